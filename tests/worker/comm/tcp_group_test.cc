// How ranks of several hosts find each other, and who else may try. Their collectives are
// communicator_contract_test.cc's business.
#include "worker/comm/tcp/tcp_group.h"

#include <poll.h>
#include <sys/socket.h>

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "common/base/address.h"
#include "common/base/status.h"
#include "common/net/secure_socket.h"
#include "common/net/stream_socket.h"
#include "gtest/gtest.h"
#include "tests/common/transport/memory_rendezvous.h"
#include "tests/contract/run_ranks.h"

namespace tandem::worker {
namespace {

constexpr Epoch kEpoch{9};
constexpr char kFirstRank[] = "communicator/9/0";
constexpr char kNowhere[] = "127.0.0.1:1";

Deadline Long() { return Deadline::After(std::chrono::seconds(60)); }
Deadline Short() { return Deadline::After(std::chrono::milliseconds(300)); }

// A rendezvous that gives other values than were put.
class ChangedRendezvous : public transport::Rendezvous {
 public:
  using Change = std::function<std::string(const std::string& key, std::string value)>;
  explicit ChangedRendezvous(Change change) : change_(std::move(change)) {}

  absl::Status Put(const std::string& key, const std::string& value) override {
    return values_.Put(key, value);
  }
  absl::StatusOr<std::string> Get(const std::string& key, Deadline deadline) override {
    TANDEM_ASSIGN_OR_RETURN(std::string value, values_.Get(key, deadline));
    return change_(key, std::move(value));
  }

 private:
  transport::MemoryRendezvous values_;
  const Change change_;
};

absl::StatusOr<std::unique_ptr<TcpGroup>> OpenGroup(int rank, int size,
                                                    transport::Rendezvous& rendezvous,
                                                    const std::string& listen = "127.0.0.1:0") {
  return TcpGroup::Open({.rank = rank,
                         .size = size,
                         .epoch = kEpoch,
                         .rendezvous = rendezvous,
                         .listen = listen,
                         .deadline = Long()});
}

// The statuses of all ranks' Join.
std::vector<absl::Status> JoinAll(int size, transport::Rendezvous& rendezvous, Deadline deadline,
                                  const std::string& listen = "127.0.0.1:0") {
  std::vector<absl::Status> joined(static_cast<size_t>(size));
  RunRanks(size, [&](int rank) {
    auto group = OpenGroup(rank, size, rendezvous, listen);
    ASSERT_TRUE(group.ok()) << group.status();
    joined[static_cast<size_t>(rank)] = (*group)->Join(deadline);
  });
  return joined;
}

net::FileDescriptor Connect(const std::string& address) {
  net::FileDescriptor socket = net::StartConnect(address).value();
  pollfd fd{.fd = socket.get(), .events = POLLOUT, .revents = 0};
  EXPECT_EQ(poll(&fd, 1, 60000), 1);
  return socket;
}

TEST(TcpGroupTest, ListensEverywhereIfNothingElseIsSaid) {
  transport::MemoryRendezvous rendezvous;
  for (const absl::Status& status : JoinAll(3, rendezvous, Long(), "")) {
    EXPECT_EQ(status, absl::OkStatus());
  }
  // Loopback is no address for others, where there is another one.
  const std::string addresses = rendezvous.Get(kFirstRank, Short()).value();
  const std::vector<std::string> hosts = net::InterfaceHosts();
  const bool only_loopback = IsLoopback(hosts[0] + ":0");
  for (const std::string& host : hosts) {
    if (host[0] == '[' || (IsLoopback(host + ":0") && !only_loopback)) continue;
    EXPECT_TRUE(absl::StrContains(addresses, host + ":")) << host;
  }
  EXPECT_EQ(absl::StrContains(addresses, "127.0.0.1:"), only_loopback) << addresses;
}

TEST(TcpGroupTest, APortThatIsTakenIsAnError) {
  transport::MemoryRendezvous rendezvous;
  const auto first = OpenGroup(0, 2, rendezvous);
  ASSERT_TRUE(first.ok()) << first.status();
  const std::string taken = rendezvous.Get(kFirstRank, Short()).value();
  const absl::Status status = OpenGroup(1, 2, rendezvous, taken).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable);
  EXPECT_TRUE(absl::StrContains(status.message(),
                                absl::StrCat("--collective-listen: cannot listen on ", taken)))
      << status;
}

TEST(TcpGroupTest, AddressesThatLeadNowhereDoNotMatter) {
  ChangedRendezvous rendezvous([](const std::string& key, std::string value) {
    return key == kFirstRank ? absl::StrCat(kNowhere, ",192.0.2.1:9,", value) : value;
  });
  for (const absl::Status& status : JoinAll(2, rendezvous, Long())) {
    EXPECT_EQ(status, absl::OkStatus());
  }
}

TEST(TcpGroupTest, WhoIsNotReachedIsNamedWithWhatWasTried) {
  ChangedRendezvous rendezvous([](const std::string& key, std::string value) {
    return key == kFirstRank ? kNowhere : value;
  });
  const std::vector<absl::Status> joined = JoinAll(2, rendezvous, Short());
  EXPECT_EQ(joined[0].message(), "communicator: rank 1 of 2 did not arrive in time at join");
  EXPECT_EQ(joined[1].message(),
            absl::StrCat("communicator: rank 0 of 2 did not arrive in time at join; tried ",
                         kNowhere, "; what failed last: ", kNowhere, ": Connection refused"));
}

TEST(TcpGroupTest, ARankWithAnotherKeyDoesNotJoin) {
  ChangedRendezvous rendezvous([](const std::string& key, std::string value) {
    return absl::EndsWith(key, "/key") ? net::DrawSharedKey() : value;
  });
  for (const absl::Status& status :
       JoinAll(2, rendezvous, Deadline::After(std::chrono::seconds(3)))) {
    EXPECT_EQ(status.code(), absl::StatusCode::kDeadlineExceeded) << status;
    EXPECT_TRUE(absl::StrContains(status.message(), "what failed last: ")) << status;
  }
}

// Several ranks may find each other, or themselves, at an address that each of their machines has.
TEST(TcpGroupTest, AnAddressOfAnotherRankIsNoneOfTheRankThatIsMeant) {
  std::string last;
  ChangedRendezvous rendezvous([&](const std::string& key, std::string value) {
    if (key == "communicator/9/1") last = value;
    return key == kFirstRank ? absl::StrCat(last.empty() ? kNowhere : last, ",", value) : value;
  });
  std::vector<std::unique_ptr<TcpGroup>> groups;
  for (int rank = 0; rank < 2; ++rank) groups.push_back(OpenGroup(rank, 3, rendezvous).value());
  ASSERT_TRUE(rendezvous.Get("communicator/9/1", Short()).ok());  // rank 2 takes it for rank 0's
  groups.push_back(OpenGroup(2, 3, rendezvous).value());
  RunRanks(3, [&](int rank) { EXPECT_EQ(groups[rank]->Join(Long()), absl::OkStatus()); });
}

// Until the other side has closed.
void AwaitClosed(int fd) {
  char byte;
  for (ssize_t got = 1; got > 0;) {
    pollfd poller{.fd = fd, .events = POLLIN, .revents = 0};
    ASSERT_EQ(poll(&poller, 1, 60000), 1);
    got = recv(fd, &byte, 1, 0);
  }
}

TEST(TcpGroupTest, StrangersAreLeftOutAndThePortCloses) {
  transport::MemoryRendezvous rendezvous;
  auto first = OpenGroup(0, 2, rendezvous).value();
  const std::string address = rendezvous.Get(kFirstRank, Short()).value();
  const net::FileDescriptor silent = Connect(address);
  const net::FileDescriptor chatty = Connect(address);
  const std::string text = "GET / HTTP/1.1\r\n\r\n";
  ASSERT_GT(send(chatty.get(), text.data(), text.size(), 0), 0);
  net::SecureSocket keyed(Connect(address), {.key = net::DrawSharedKey()});
  ASSERT_FALSE(keyed.Handshake().value());  // begun
  RunRanks(2, [&](int rank) {
    if (rank == 0) {
      EXPECT_EQ(first->Join(Long()), absl::OkStatus());
      return;
    }
    AwaitClosed(chatty.get());
    AwaitClosed(keyed.fd());
    // There is room for so many, and the oldest goes.
    std::vector<net::FileDescriptor> crowd;
    for (int i = 0; i < 300; ++i) crowd.push_back(Connect(address));
    AwaitClosed(silent.get());
    auto second = OpenGroup(1, 2, rendezvous).value();
    EXPECT_EQ(second->Join(Long()), absl::OkStatus());
    AwaitClosed(crowd.back().get());
  });
  EXPECT_EQ(net::ConnectResult(Connect(address)).code(), absl::StatusCode::kUnavailable);
}

// The key is not enough: a hello must come from a missing higher rank and be meant for this one.
TEST(TcpGroupTest, OnlyHigherRanksThatAreMissingAreTaken) {
  transport::MemoryRendezvous rendezvous;
  auto group = OpenGroup(0, 2, rendezvous).value();
  const std::string address = rendezvous.Get(kFirstRank, Short()).value();
  const std::string key = rendezvous.Get("communicator/9/key", Short()).value();
  const absl::Status reason = absl::CancelledError("all were refused");
  RunRanks(2, [&](int thread) {
    if (thread == 0) {
      EXPECT_EQ(group->Join(Long()), reason);
      return;
    }
    const std::pair<uint32_t, uint64_t> hellos[] = {{0, 0}, {2, 0}, {0xffffffff, 0}, {1, 1}};
    for (const auto& [rank, meant] : hellos) {
      net::SecureSocket socket(Connect(address), {.key = key});
      for (auto done = socket.Handshake(); !done.value(); done = socket.Handshake()) {
        pollfd fd{.fd = socket.fd(), .events = POLLIN, .revents = 0};
        poll(&fd, 1, 60000);
      }
      const FrameHeader hello{
          .kind = FrameHeader::kHello, .root = rank, .bytes = meant, .payload_bytes = 0};
      ASSERT_TRUE(socket.Write(hello.wire()).ok());
      ASSERT_TRUE(socket.Flush().ok());
      AwaitClosed(socket.fd());
    }
    group->Abort(reason);
  });
}

// Pieces of another length are as wrong as another collective.
TEST(TcpGroupTest, PiecesOfAnotherLengthAreAnError) {
  transport::MemoryRendezvous rendezvous;
  std::vector<std::unique_ptr<TcpGroup>> groups;
  for (int rank = 0; rank < 2; ++rank) groups.push_back(OpenGroup(rank, 2, rendezvous).value());
  RunRanks(2, [&](int rank) { ASSERT_EQ(groups[rank]->Join(Long()), absl::OkStatus()); });
  const CollectiveTag tag{CollectiveKind::kBroadcast, 0, 100};
  std::vector<std::byte> bytes(100);
  const TcpGroup::Outgoing whole{1, bytes};
  const TcpGroup::Incoming half{0, std::span(bytes).first(50)};
  EXPECT_EQ(groups[0]->Exchange(tag, {&whole, 1}, {}, Long()), absl::OkStatus());
  EXPECT_EQ(groups[1]->Exchange(tag, {}, {&half, 1}, Long()).code(), absl::StatusCode::kInternal);
}

}  // namespace
}  // namespace tandem::worker
