// TcpGroup: one rank's connections to all others, and the exchange that every collective of ranks
// on several hosts is made of.
//
// Ranks find each other through the rendezvous: each puts its addresses, rank 0 the key by which
// they know each other (net::SecureSocket). The port closes when all have met. Errors break the
// group: a rank tells the others the first one and returns it from then on. One thread for each
// rank, except Abort, which any thread may call.
#ifndef TANDEM_WORKER_COMM_TCP_TCP_GROUP_H_
#define TANDEM_WORKER_COMM_TCP_TCP_GROUP_H_

#include <atomic>
#include <cstddef>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/base/clock.h"
#include "common/base/mutex.h"
#include "common/net/file_descriptor.h"
#include "common/net/listen_socket.h"
#include "worker/comm/collective.h"
#include "worker/comm/communicator_parts.h"
#include "worker/comm/tcp/meeting.h"
#include "worker/comm/tcp/peer_link.h"

namespace tandem::worker {

class TcpGroup {
 public:
  struct Outgoing {
    int rank = 0;
    std::span<const std::byte> bytes;
  };
  struct Incoming {
    int rank = 0;
    std::span<std::byte> bytes;
  };

  // Listens, and exchanges addresses. UNAVAILABLE with the system's reason; errors of the
  // rendezvous.
  static absl::StatusOr<std::unique_ptr<TcpGroup>> Open(const CommunicatorParts& parts);

  // Leaves: ranks waiting for this one fail at once.
  ~TcpGroup() = default;

  int rank() const { return plan_.rank; }
  int size() const { return plan_.size; }

  // Returns when every rank has called it.
  absl::Status Join(Deadline deadline);
  // Sends and receives what is listed, at most one part each way for another rank, until all of it
  // has come and gone. `tag` must be the same on all of them.
  absl::Status Exchange(const CollectiveTag& tag, std::span<const Outgoing> outgoing,
                        std::span<const Incoming> incoming, Deadline deadline);

  // Thread-safe.
  void Abort(const absl::Status& reason);

 private:
  TcpGroup(net::ListenSocket listening, net::FileDescriptor wake);

  absl::Status ExchangeAll(const CollectiveTag& tag, std::span<const Outgoing> outgoing,
                           std::span<const Incoming> incoming, Deadline deadline)
      TANDEM_REQUIRES(io_);
  // Until no frame is on its way.
  absl::Status Pump(const CollectiveTag& tag, Deadline deadline) TANDEM_REQUIRES(io_);
  // The reason if a rank that nothing is expected of has broken the group.
  absl::Status CheckAborted() TANDEM_REQUIRES(io_);
  // The same, or the error of a rank whose machine is gone.
  absl::Status CheckOthers() TANDEM_REQUIRES(io_);
  // Until a socket is ready, an abort is asked for, the deadline has passed or it is time to check
  // the others.
  void WaitForSockets(Deadline deadline) TANDEM_REQUIRES(io_);
  std::string Unfinished() const TANDEM_REQUIRES(io_);
  // OK, or the reason of an abort that was asked for.
  absl::Status Requested() const;
  // Breaks the group with `reason` unless it is broken; returns why it is.
  absl::Status Break(const absl::Status& reason) TANDEM_REQUIRES(io_);

  MeetingPlan plan_;
  std::optional<net::ListenSocket> listening_;  // until all have met
  const net::FileDescriptor wake_;              // an eventfd: an abort is asked for

  // Whoever uses the connections: a collective, or an abort between collectives.
  Mutex io_;
  std::vector<std::unique_ptr<PeerLink>> links_ TANDEM_GUARDED_BY(io_);
  absl::Status broken_ TANDEM_GUARDED_BY(io_);

  std::atomic<bool> is_requested_{false};
  mutable Mutex request_;
  absl::Status requested_ TANDEM_GUARDED_BY(request_);
};

}  // namespace tandem::worker

#endif  // TANDEM_WORKER_COMM_TCP_TCP_GROUP_H_
