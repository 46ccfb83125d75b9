// PeerLink: the connection to one other rank: at most one frame on its way in each direction.
//
// Nothing blocks: Progress does what can be done now. A frame of an abort ends what is received,
// with its reason. One thread at a time.
#ifndef TANDEM_WORKER_COMM_TCP_PEER_LINK_H_
#define TANDEM_WORKER_COMM_TCP_PEER_LINK_H_

#include <cstddef>
#include <memory>
#include <span>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/net/secure_socket.h"
#include "worker/comm/collective.h"
#include "worker/comm/tcp/frame.h"

namespace tandem::worker {

// The ranks at both ends, for errors.
struct RankPair {
  int own = 0;
  int peer = 0;
  int size = 1;
};

class PeerLink {
 public:
  // Of a socket whose handshake is over.
  PeerLink(const RankPair& ranks, std::unique_ptr<net::SecureSocket> socket)
      : ranks_(ranks), socket_(std::move(socket)) {}

  int fd() const { return socket_->fd(); }

  // REQUIRES: the last one has been sent. The payload stays as it is until then.
  void Send(const CollectiveTag& tag, std::span<const std::byte> payload);
  // The next frame, which must be of `tag` and as long as `payload`. REQUIRES: the last one has
  // been received.
  void Receive(const CollectiveTag& tag, std::span<std::byte> payload);
  bool sending() const { return sending_; }
  bool receiving() const { return receiving_; }
  // Whether anything moved. UNAVAILABLE naming the rank if it has left; INTERNAL if it is in
  // another collective; the reason of its abort.
  absl::StatusOr<bool> Progress();
  // The reason, if an abort has come behind what was received. OK if the rank has left: that is an
  // error once something is expected of it.
  absl::Status CheckAborted();
  // UNAVAILABLE naming the rank if its machine has not answered for a while. A call of the system.
  absl::Status CheckAnswers() const;
  // What to wait for at the socket, as poll() has it; 0: nothing that this link is interested in.
  short events() const;

  // Tells the other rank the reason if no frame is half sent, and sends no more.
  void Abort(const absl::Status& reason);

 private:
  absl::Status ProgressSend(bool& moved);
  absl::Status ProgressReceive(bool& moved);
  // The header of the next frame; whether it is there. An abort's is an error.
  absl::StatusOr<bool> ReadHeader(bool& moved);
  // Why the next frame is not the one that is due.
  absl::Status Mismatch();
  absl::StatusOr<bool> Fill(std::span<std::byte> bytes, size_t& filled, bool& moved);
  absl::StatusOr<bool> ReadAbort(bool& moved);
  absl::Status Left(const absl::Status& why) const;

  const RankPair ranks_;
  const std::unique_ptr<net::SecureSocket> socket_;

  bool sending_ = false;
  FrameHeader out_header_;
  std::span<const std::byte> out_;  // what is left of the payload
  size_t out_header_sent_ = 0;

  bool receiving_ = false;
  CollectiveTag in_tag_;
  std::span<std::byte> in_;
  size_t in_filled_ = 0;
  FrameHeader in_header_;
  size_t in_header_filled_ = 0;
  bool left_ = false;  // the other rank, between frames
  std::string abort_message_;
  size_t abort_filled_ = 0;
};

}  // namespace tandem::worker

#endif  // TANDEM_WORKER_COMM_TCP_PEER_LINK_H_
