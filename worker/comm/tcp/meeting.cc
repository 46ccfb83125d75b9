#include "worker/comm/tcp/meeting.h"

#include <poll.h>

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/base/log.h"
#include "common/base/status.h"
#include "common/net/secure_socket.h"
#include "common/net/stream_socket.h"
#include "worker/comm/tcp/frame.h"

namespace tandem::worker {
namespace {

// Addresses that failed are tried again after this.
constexpr auto kRetryInterval = std::chrono::milliseconds(100);
// Strangers' connections that are kept beside those of ranks; more are closed, the oldest first.
constexpr size_t kMaxAccepted = 256;
// At a time, so that a crowd of them does not keep the ranks waiting.
constexpr int kAcceptedAtOnce = 64;

// A connection that is not a link yet.
struct Attempt {
  int rank = -1;                              // of the peer to reach; -1: accepted, not known yet
  std::string address;                        // to reach it; empty if accepted
  net::FileDescriptor connecting;             // until TCP is connected
  std::unique_ptr<net::SecureSocket> socket;  // from then on
  bool said_hello = false;
  FrameHeader hello;  // the peer's, of which hello_bytes have come
  size_t hello_bytes = 0;

  int fd() const { return socket == nullptr ? connecting.get() : socket->fd(); }
  short events() const {
    if (socket == nullptr) return POLLOUT;
    return static_cast<short>(socket->has_unsent() ? POLLIN | POLLOUT : POLLIN);
  }
};

class Gathering {
 public:
  Gathering(const MeetingPlan& plan, const net::ListenSocket& listening,
            std::vector<std::unique_ptr<PeerLink>>& links)
      : plan_(plan), listening_(listening), links_(links) {
    links_.resize(static_cast<size_t>(plan.size));
  }

  absl::Status Run(Deadline deadline) {
    while (true) {
      if (absl::Status aborted = plan_.aborted(); !aborted.ok()) return aborted;
      const std::string missing = Missing();
      if (missing.empty()) return absl::OkStatus();
      if (deadline.Passed()) return DeadlinePassed(missing);
      if (retry_.Passed()) {
        retry_ = Deadline::After(kRetryInterval);
        for (int lower = 0; lower < plan_.rank; ++lower) Connect(lower);
      }
      Wait(deadline);
      Accept();
      for (Attempt& attempt : attempts_) {
        if (absl::Status status = Advance(attempt); !status.ok()) Drop(attempt, status);
      }
      std::erase_if(attempts_, [&](const Attempt& one) { return one.fd() < 0 || IsLinked(one); });
    }
  }

 private:
  bool IsLinked(const Attempt& one) const { return one.rank >= 0 && links_[one.rank] != nullptr; }

  std::string Missing() const {
    std::vector<int> missing;
    for (int rank = 0; rank < plan_.size; ++rank) {
      if (rank != plan_.rank && links_[rank] == nullptr) missing.push_back(rank);
    }
    return absl::StrJoin(missing, ", ");
  }

  // With the addresses that were tried in vain.
  absl::Status DeadlinePassed(const std::string& missing) const {
    const absl::Status status = MissingRanks(missing, plan_.size, {});
    std::vector<std::string> tried;
    for (int lower = 0; lower < plan_.rank; ++lower) {
      if (links_[lower] != nullptr) continue;
      tried.insert(tried.end(), plan_.addresses[lower].begin(), plan_.addresses[lower].end());
    }
    return absl::DeadlineExceededError(
        absl::StrCat(status.message(), tried.empty() ? "" : "; tried ", absl::StrJoin(tried, ", "),
                     last_error_.empty() ? "" : "; what failed last: ", last_error_));
  }

  // Begins with the addresses of a rank that are not under way.
  void Connect(int rank) {
    if (links_[rank] != nullptr) return;
    for (const std::string& address : plan_.addresses[rank]) {
      const bool under_way = std::any_of(
          attempts_.begin(), attempts_.end(),
          [&](const Attempt& one) { return one.rank == rank && one.address == address; });
      if (under_way) continue;
      absl::StatusOr<net::FileDescriptor> connecting = net::StartConnect(address);
      if (!connecting.ok()) {
        last_error_ = std::string(connecting.status().message());
        continue;
      }
      Attempt& attempt = attempts_.emplace_back();
      attempt.rank = rank;
      attempt.address = address;
      attempt.connecting = *std::move(connecting);
    }
  }

  void Wait(Deadline deadline) {
    std::vector<pollfd> fds;
    fds.push_back({.fd = plan_.wake_fd, .events = POLLIN, .revents = 0});
    for (const int fd : listening_.fds()) fds.push_back({.fd = fd, .events = POLLIN, .revents = 0});
    for (const Attempt& one : attempts_) {
      fds.push_back({.fd = one.fd(), .events = one.events(), .revents = 0});
    }
    const Duration left = std::min(deadline.Left(), retry_.Left());
    const auto ms = std::chrono::ceil<std::chrono::milliseconds>(left);
    poll(fds.data(), fds.size(), static_cast<int>(ms.count()));
  }

  void Accept() {
    for (const int listening : listening_.fds()) {
      for (int i = 0; i < kAcceptedAtOnce; ++i) {
        net::FileDescriptor fd = net::AcceptWaiting(listening);
        if (fd.get() < 0) break;
        const auto accepted = [](const Attempt& one) { return one.rank < 0; };
        if (std::count_if(attempts_.begin(), attempts_.end(), accepted) >=
            static_cast<ptrdiff_t>(kMaxAccepted)) {
          attempts_.erase(std::find_if(attempts_.begin(), attempts_.end(), accepted));
        }
        attempts_.emplace_back().socket = Secure(std::move(fd), net::SecureSocket::Side::kAccepts);
      }
    }
  }

  std::unique_ptr<net::SecureSocket> Secure(net::FileDescriptor fd, net::SecureSocket::Side side) {
    return std::make_unique<net::SecureSocket>(
        std::move(fd), net::SecureSocket::Options{.side = side, .key = plan_.key});
  }

  // An error ends the attempt.
  absl::Status Advance(Attempt& attempt) {
    if (IsLinked(attempt)) return absl::OkStatus();
    if (attempt.socket == nullptr) {
      pollfd fd{.fd = attempt.fd(), .events = POLLOUT, .revents = 0};
      if (poll(&fd, 1, 0) == 0) return absl::OkStatus();
      TANDEM_RETURN_IF_ERROR(net::ConnectResult(attempt.connecting));
      attempt.socket = Secure(std::move(attempt.connecting), net::SecureSocket::Side::kConnects);
    }
    TANDEM_ASSIGN_OR_RETURN(const bool secure, attempt.socket->Handshake());
    if (!secure) return absl::OkStatus();
    // Both say who they are and who is meant: at an address that several machines have there may be
    // another rank, or this one itself.
    if (attempt.rank >= 0) TANDEM_RETURN_IF_ERROR(SayHello(attempt, attempt.rank));
    TANDEM_ASSIGN_OR_RETURN(const bool heard, HearHello(attempt));
    if (!heard) return absl::OkStatus();
    if (!IsDue(attempt)) {
      return absl::InvalidArgumentError(
          absl::StrCat("a hello of rank ", attempt.hello.root, " for rank ", attempt.hello.bytes));
    }
    const auto rank = static_cast<int>(attempt.hello.root);
    if (attempt.rank < 0) TANDEM_RETURN_IF_ERROR(SayHello(attempt, rank));
    Link(attempt, rank);
    return absl::OkStatus();
  }

  // Whether the rank that says hello is one that is to be at the other side.
  bool IsDue(const Attempt& attempt) const {
    const FrameHeader& hello = attempt.hello;
    const auto own = static_cast<uint32_t>(plan_.rank);
    if (hello.kind != FrameHeader::kHello || hello.bytes != own) return false;
    if (attempt.rank >= 0) return hello.root == static_cast<uint32_t>(attempt.rank);
    return hello.root > own && hello.root < static_cast<uint32_t>(plan_.size) &&
           links_[hello.root] == nullptr;
  }

  absl::Status SayHello(Attempt& attempt, int to) const {
    if (attempt.said_hello) return absl::OkStatus();
    attempt.said_hello = true;
    const FrameHeader hello{.kind = FrameHeader::kHello,
                            .root = static_cast<uint32_t>(plan_.rank),
                            .bytes = static_cast<uint64_t>(to),
                            .payload_bytes = 0};
    TANDEM_RETURN_IF_ERROR(attempt.socket->Write(hello.wire()).status());
    return attempt.socket->Flush().status();
  }

  // Whether it is there.
  absl::StatusOr<bool> HearHello(Attempt& attempt) const {
    const auto rest = attempt.hello.wire().subspan(attempt.hello_bytes);
    TANDEM_ASSIGN_OR_RETURN(const size_t read, attempt.socket->Read(rest));
    attempt.hello_bytes += read;
    return attempt.hello_bytes == sizeof(FrameHeader);
  }

  void Link(Attempt& attempt, int rank) {
    const RankPair ranks{.own = plan_.rank, .peer = rank, .size = plan_.size};
    links_[rank] = std::make_unique<PeerLink>(ranks, std::move(attempt.socket));
  }

  void Drop(Attempt& attempt, const absl::Status& why) {
    last_error_ =
        absl::StrCat(attempt.rank < 0 ? "a connection" : attempt.address, ": ", why.message());
    TANDEM_LOG(kDebug) << "communicator: " << last_error_;
    attempt.socket = nullptr;
    attempt.connecting = net::FileDescriptor();
  }

  const MeetingPlan& plan_;
  const net::ListenSocket& listening_;
  std::vector<std::unique_ptr<PeerLink>>& links_;
  std::vector<Attempt> attempts_;
  Deadline retry_ = Deadline::After(Duration::zero());
  std::string last_error_;
};

}  // namespace

absl::Status MeetRanks(const MeetingPlan& plan, const net::ListenSocket& listening,
                       Deadline deadline, std::vector<std::unique_ptr<PeerLink>>& links) {
  return Gathering(plan, listening, links).Run(deadline);
}

}  // namespace tandem::worker
