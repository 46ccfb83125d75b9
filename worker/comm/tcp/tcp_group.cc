#include "worker/comm/tcp/tcp_group.h"

#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/eventfd.h>

#include <algorithm>
#include <chrono>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "common/base/check.h"
#include "common/base/log.h"
#include "common/base/status.h"
#include "common/net/secure_socket.h"
#include "common/net/stream_socket.h"

namespace tandem::worker {
namespace {

// How long a wait looks at its sockets before it parks: about as long as a message takes between
// machines side by side.
constexpr auto kSpin = std::chrono::microseconds(50);
// How often a wait asks whether the others' machines answer.
constexpr auto kCheckInterval = std::chrono::seconds(1);
constexpr char kAnyHost[] = "[::]:0";
constexpr char kAnyV4Host[] = "0.0.0.0:0";

absl::StatusOr<net::ListenSocket> Listen(const std::string& address) {
  if (!address.empty()) return net::ListenSocket::Bind("--collective-listen", address);
  absl::StatusOr<net::ListenSocket> any = net::ListenSocket::Bind("the ranks' port", kAnyHost);
  if (any.ok()) return any;
  return net::ListenSocket::Bind("the ranks' port", kAnyV4Host);
}

}  // namespace

TcpGroup::TcpGroup(net::ListenSocket listening, net::FileDescriptor wake)
    : listening_(std::move(listening)), wake_(std::move(wake)) {}

absl::StatusOr<std::unique_ptr<TcpGroup>> TcpGroup::Open(const CommunicatorParts& parts) {
  TANDEM_CHECK(parts.rank >= 0 && parts.rank < parts.size) << parts.rank << "/" << parts.size;
  TANDEM_ASSIGN_OR_RETURN(net::ListenSocket listening, Listen(parts.listen));
  const std::vector<std::string> own = net::ReachableAddresses(listening);
  if (own.empty()) return absl::UnavailableError("communicator: this machine has no address");
  net::FileDescriptor wake(eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC));
  if (wake.get() < 0) return absl::UnavailableError(strerror(errno));
  auto group = std::unique_ptr<TcpGroup>(new TcpGroup(std::move(listening), std::move(wake)));
  MeetingPlan& plan = group->plan_;
  plan.rank = parts.rank;
  plan.size = parts.size;
  plan.wake_fd = group->wake_.get();
  plan.aborted = [self = group.get()] { return self->Requested(); };
  const std::string prefix = absl::StrCat("communicator/", parts.epoch.value, "/");
  TANDEM_RETURN_IF_ERROR(parts.rendezvous.Put(absl::StrCat(prefix, parts.rank),  //
                                              absl::StrJoin(own, ",")));
  if (parts.rank == 0) {
    plan.key = net::DrawSharedKey();
    TANDEM_RETURN_IF_ERROR(parts.rendezvous.Put(prefix + "key", plan.key));
    return group;
  }
  TANDEM_ASSIGN_OR_RETURN(plan.key, parts.rendezvous.Get(prefix + "key", parts.deadline));
  for (int lower = 0; lower < parts.rank; ++lower) {
    TANDEM_ASSIGN_OR_RETURN(const std::string addresses,
                            parts.rendezvous.Get(absl::StrCat(prefix, lower), parts.deadline));
    plan.addresses.push_back(absl::StrSplit(addresses, ','));
  }
  return group;
}

absl::Status TcpGroup::Join(Deadline deadline) {
  MutexLock io(io_);
  if (!broken_.ok()) return broken_;
  const absl::Status met = MeetRanks(plan_, *listening_, deadline, links_);
  listening_.reset();
  if (!met.ok()) return Break(met);
  std::vector<Outgoing> outgoing;
  std::vector<Incoming> incoming;
  for (int other = 0; other < size(); ++other) {
    if (other == rank()) continue;
    outgoing.push_back({other, {}});
    incoming.push_back({other, {}});
  }
  TANDEM_RETURN_IF_ERROR(ExchangeAll({CollectiveKind::kJoin, 0, 0}, outgoing, incoming, deadline));
  TANDEM_LOG(kInfo) << "connected to " << size() - 1 << " other rank(s) over TCP";
  return absl::OkStatus();
}

absl::Status TcpGroup::Exchange(const CollectiveTag& tag, std::span<const Outgoing> outgoing,
                                std::span<const Incoming> incoming, Deadline deadline) {
  MutexLock io(io_);
  return ExchangeAll(tag, outgoing, incoming, deadline);
}

absl::Status TcpGroup::ExchangeAll(const CollectiveTag& tag, std::span<const Outgoing> outgoing,
                                   std::span<const Incoming> incoming, Deadline deadline) {
  if (!broken_.ok()) return broken_;
  for (const Outgoing& out : outgoing) links_[out.rank]->Send(tag, out.bytes);
  for (const Incoming& in : incoming) links_[in.rank]->Receive(tag, in.bytes);
  if (absl::Status status = Pump(tag, deadline); !status.ok()) return Break(status);
  // A rank that has broken the group sent its reason after its part of this exchange.
  const absl::Status aborted = CheckAborted();
  return aborted.ok() ? aborted : Break(aborted);
}

absl::Status TcpGroup::CheckAborted() {
  for (const auto& link : links_) {
    if (link == nullptr || link->receiving()) continue;
    TANDEM_RETURN_IF_ERROR(link->CheckAborted());
  }
  return absl::OkStatus();
}

absl::Status TcpGroup::CheckOthers() {
  TANDEM_RETURN_IF_ERROR(CheckAborted());
  for (const auto& link : links_) {
    if (link != nullptr) TANDEM_RETURN_IF_ERROR(link->CheckAnswers());
  }
  return absl::OkStatus();
}

absl::Status TcpGroup::Pump(const CollectiveTag& tag, Deadline deadline) {
  auto parks_at = std::chrono::steady_clock::now() + kSpin;
  while (true) {
    bool done = true;
    bool moved = false;
    for (const auto& link : links_) {
      if (link == nullptr || !(link->sending() || link->receiving())) continue;
      TANDEM_ASSIGN_OR_RETURN(const bool progress, link->Progress());
      moved = moved || progress;
      done = done && !link->sending() && !link->receiving();
    }
    if (done) return absl::OkStatus();
    if (is_requested_.load(std::memory_order_acquire)) return Requested();
    if (deadline.Passed()) return MissingRanks(Unfinished(), size(), tag);
    const auto now = std::chrono::steady_clock::now();
    if (moved) {
      parks_at = now + kSpin;
    } else if (now >= parks_at) {
      TANDEM_RETURN_IF_ERROR(CheckOthers());
      WaitForSockets(deadline);
    }
  }
}

void TcpGroup::WaitForSockets(Deadline deadline) {
  std::vector<pollfd> fds;
  fds.push_back({.fd = wake_.get(), .events = POLLIN, .revents = 0});
  for (const auto& link : links_) {
    if (link == nullptr || link->events() == 0) continue;
    fds.push_back({.fd = link->fd(), .events = link->events(), .revents = 0});
  }
  const Duration wait = std::min<Duration>(deadline.Left(), kCheckInterval);
  const auto ms = std::chrono::ceil<std::chrono::milliseconds>(wait);
  poll(fds.data(), fds.size(), static_cast<int>(ms.count()));
}

std::string TcpGroup::Unfinished() const {
  std::vector<int> ranks;
  for (int other = 0; other < size(); ++other) {
    const auto& link = links_[other];
    if (link != nullptr && (link->receiving() || link->sending())) ranks.push_back(other);
  }
  return absl::StrJoin(ranks, ", ");
}

void TcpGroup::Abort(const absl::Status& reason) {
  {
    MutexLock lock(request_);
    if (!requested_.ok()) return;
    requested_ = AbortReason(reason);
  }
  is_requested_.store(true, std::memory_order_release);
  const uint64_t one = 1;
  TANDEM_CHECK(write(wake_.get(), &one, sizeof(one)) == sizeof(one));
  MutexLock io(io_);  // a collective under way sees the request and lets go
  if (!broken_.ok()) return;
  const absl::Status of_others = CheckAborted();
  Break(of_others.ok() ? Requested() : of_others).IgnoreError();
}

absl::Status TcpGroup::Requested() const {
  MutexLock lock(request_);
  return requested_;
}

absl::Status TcpGroup::Break(const absl::Status& reason) {
  if (!broken_.ok()) return broken_;
  broken_ = reason;
  for (const auto& link : links_) {
    if (link != nullptr) link->Abort(reason);
  }
  return broken_;
}

}  // namespace tandem::worker
