// Ranks as real processes, over shared memory and over TCP: the parent is rank 0, the others are
// forked. Bits, and what happens when one is killed or stopped.
#include <chrono>
#include <filesystem>
#include <list>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/base/status.h"
#include "gtest/gtest.h"
#include "tests/common/transport/file_rendezvous.h"
#include "tests/common/transport/fork_child.h"
#include "tests/contract/host_streams.h"
#include "worker/comm/open_communicator.h"

namespace tandem::worker {
namespace {

constexpr Epoch kEpoch{3};
constexpr size_t kCount = 3000;

// What a forked rank answers by its exit code.
enum Exit { kAllGood = 0, kCannotOpen = 2, kWrongBits = 3, kOtherError = 4, kNamedTheMissing = 5 };

Deadline Long() { return Deadline::After(std::chrono::seconds(60)); }
Deadline Short() { return Deadline::After(std::chrono::milliseconds(200)); }

float Value(int rank, int round, size_t i) {
  return static_cast<float>((rank + 1) * (round + 1)) + static_cast<float>(i) * 0.1f;
}

// One all-reduce, and whether every value is right to the bit.
absl::Status Round(Communicator& comm, kernels::ListStream& stream, int round, Deadline deadline) {
  std::vector<float> data(kCount);
  for (size_t i = 0; i < kCount; ++i) data[i] = Value(comm.rank(), round, i);
  comm.AllReduceSum(data.data(), kCount);
  if (absl::Status status = stream.Run(deadline); !status.ok()) return status;
  for (size_t i = 0; i < kCount; ++i) {
    float sum = Value(0, round, i);
    for (int rank = 1; rank < comm.size(); ++rank) sum += Value(rank, round, i);
    if (data[i] != sum) return absl::DataLossError(absl::StrCat("value ", i));
  }
  return absl::OkStatus();
}

// The ranks of a test: how they are connected, and where they find each other.
struct Group {
  bool over_tcp = false;
  int size = 1;
  std::filesystem::path folder;

  absl::StatusOr<std::unique_ptr<Communicator>> Join(int rank, kernels::HostStream& stream) const {
    transport::FileRendezvous rendezvous(folder);
    TANDEM_ASSIGN_OR_RETURN(auto comm, OpenCommunicator({.rank = rank,
                                                         .size = size,
                                                         .epoch = kEpoch,
                                                         .rendezvous = rendezvous,
                                                         .host_stream = &stream,
                                                         .over_tcp = over_tcp,
                                                         .listen = "127.0.0.1:0",
                                                         .deadline = Long()}));
    TANDEM_RETURN_IF_ERROR(comm->Join(Long()));
    return comm;
  }
};

// A forked rank: `rounds` all-reduces, or until an error; `missing` is the rank whose name it then
// expects.
int RunRank(const Group& group, int rank, int rounds, int missing) {
  kernels::ListStream stream;
  const auto comm = group.Join(rank, stream);
  if (!comm.ok()) return kCannotOpen;
  for (int round = 0; round < rounds; ++round) {
    const absl::Status status = Round(**comm, stream, round, Long());
    if (status.ok()) continue;
    if (absl::IsDataLoss(status)) return kWrongBits;
    // Among those that are late.
    const bool named =
        status.message().find(absl::StrCat(missing, " of ", group.size)) != absl::string_view::npos;
    return named ? kNamedTheMissing : kOtherError;
  }
  return kAllGood;
}

// Rank 0 and its forked peers.
struct Processes {
  Processes(bool over_tcp, int size, int rounds, int missing) {
    group = {.over_tcp = over_tcp,
             .size = size,
             .folder = testing::TempDir() + "/" + std::to_string(getpid()) + "-" +
                       std::to_string(++groups)};
    std::filesystem::create_directory(group.folder);
    for (int rank = 1; rank < size; ++rank) {
      children.emplace_back([=, this] { return RunRank(group, rank, rounds, missing); });
    }
    auto joined = group.Join(0, stream);
    EXPECT_TRUE(joined.ok()) << joined.status();
    comm = std::move(joined).value();
  }

  static inline int groups = 0;
  Group group;
  kernels::ListStream stream;
  std::list<transport::ForkChild> children;
  std::unique_ptr<Communicator> comm;
};

class RankProcessesTest : public testing::TestWithParam<bool> {
 protected:
  bool over_tcp() const { return GetParam(); }
};

INSTANTIATE_TEST_SUITE_P(Comm, RankProcessesTest, testing::Bool(),
                         [](const auto& test) { return std::string(test.param ? "Tcp" : "Shm"); });

// Rank 2 of 3 stops participating; the other ranks' errors name it, in bounded time.
void ExpectMissingRankIsNamed(Processes& processes, absl::StatusCode code) {
  const auto start = std::chrono::steady_clock::now();
  // Rounds that rank 2 had begun before may still succeed.
  absl::Status status;
  for (int round = 10; status.ok() && round < 20; ++round) {
    status = Round(*processes.comm, processes.stream, round, Short());
  }
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(60));
  EXPECT_EQ(status.code(), code) << status;
  EXPECT_NE(status.message().find("2 of 3"), absl::string_view::npos) << status;
  EXPECT_EQ(processes.children.front().Wait(), kNamedTheMissing);
}

// Its connections end with it; of shared memory nothing says that it is gone.
TEST_P(RankProcessesTest, AKilledRankIsNamed) {
  Processes processes(over_tcp(), 3, 1 << 30, 2);
  for (int round = 0; round < 10; ++round) {
    ASSERT_EQ(Round(*processes.comm, processes.stream, round, Long()), absl::OkStatus());
  }
  processes.children.back().Signal(SIGKILL);
  EXPECT_EQ(processes.children.back().Wait(), -1);
  ExpectMissingRankIsNamed(
      processes, over_tcp() ? absl::StatusCode::kUnavailable : absl::StatusCode::kDeadlineExceeded);
}

TEST_P(RankProcessesTest, AStoppedRankIsNamedAtTheDeadlineAndLearnsItLater) {
  Processes processes(over_tcp(), 3, 1 << 30, 2);
  for (int round = 0; round < 10; ++round) {
    ASSERT_EQ(Round(*processes.comm, processes.stream, round, Long()), absl::OkStatus());
  }
  processes.children.back().Stop();
  ExpectMissingRankIsNamed(processes, absl::StatusCode::kDeadlineExceeded);
  processes.children.back().Signal(SIGCONT);
  EXPECT_EQ(processes.children.back().Wait(), kNamedTheMissing);
}

// Its machine answers, so that it has the time that a step may take, however much is sent to it.
TEST_P(RankProcessesTest, AStoppedRankIsWaitedForUntilTheDeadline) {
  if (!over_tcp()) GTEST_SKIP() << "shared memory has no connections";
  Processes processes(over_tcp(), 2, 1 << 30, 7);
  ASSERT_EQ(Round(*processes.comm, processes.stream, 0, Long()), absl::OkStatus());
  processes.children.back().Stop();
  std::vector<float> data(16 << 20);
  processes.comm->Broadcast(data.data(), data.size() * sizeof(float), 0);
  const absl::Status status =
      processes.stream.Run(Deadline::After(std::chrono::seconds(13)));  // more than machines have
  EXPECT_EQ(status.code(), absl::StatusCode::kDeadlineExceeded) << status;
}

TEST_P(RankProcessesTest, AbortReachesOtherProcesses) {
  Processes processes(over_tcp(), 2, 1 << 30, 7);
  ASSERT_EQ(Round(*processes.comm, processes.stream, 0, Long()), absl::OkStatus());
  processes.comm->Abort(absl::UnavailableError("rank 7 of 2 is a test"));
  EXPECT_EQ(processes.children.back().Wait(), kNamedTheMissing);
}

}  // namespace
}  // namespace tandem::worker
