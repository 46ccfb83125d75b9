// How ranks of several hosts connect: one connection per pair, from the higher rank to the lower.
//
// A host has several addresses, of which others may reach some: all are tried at once, and the
// first connection on which both sides have the group's key and name each other is kept.
#ifndef TANDEM_WORKER_COMM_TCP_MEETING_H_
#define TANDEM_WORKER_COMM_TCP_MEETING_H_

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "common/base/clock.h"
#include "common/net/listen_socket.h"
#include "worker/comm/tcp/peer_link.h"

namespace tandem::worker {

struct MeetingPlan {
  int rank = 0;
  int size = 1;
  std::string key;                                  // of net::DrawSharedKey, the group's
  std::vector<std::vector<std::string>> addresses;  // of each lower rank: numeric HOST:PORTs
  int wake_fd = -1;                                 // readable once `aborted` is an error
  std::function<absl::Status()> aborted;
};

// Fills `links`, by rank, null for the own one. On an error those that stand are in it.
// DEADLINE_EXCEEDED naming the missing ranks; the reason of an abort.
absl::Status MeetRanks(const MeetingPlan& plan, const net::ListenSocket& listening,
                       Deadline deadline, std::vector<std::unique_ptr<PeerLink>>& links);

}  // namespace tandem::worker

#endif  // TANDEM_WORKER_COMM_TCP_MEETING_H_
