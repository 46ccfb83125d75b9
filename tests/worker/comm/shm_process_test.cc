// Ranks as real processes: the parent is rank 0, the others are forked. Bits, and what happens when
// one is killed or stopped.
#include <chrono>
#include <list>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "tests/common/transport/fork_child.h"
#include "tests/contract/host_streams.h"
#include "worker/comm/shm_communicator.h"

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

// A forked rank: `rounds` all-reduces, or until an error; `missing` is the rank whose name it then
// expects.
int RunRank(const std::string& address, int rank, int size, int rounds, int missing) {
  auto group = ShmGroup::Open(address, rank, size, kEpoch, {});
  if (!group.ok()) return kCannotOpen;
  kernels::ListStream stream;
  ShmCommunicator comm(std::move(*group), stream);
  for (int round = 0; round < rounds; ++round) {
    const absl::Status status = Round(comm, stream, round, Long());
    if (status.ok()) continue;
    if (absl::IsDataLoss(status)) return kWrongBits;
    // Among those that are late.
    const bool named =
        status.message().find(absl::StrCat(missing, " of ", size)) != absl::string_view::npos;
    return named ? kNamedTheMissing : kOtherError;
  }
  return kAllGood;
}

// Rank 0 and its forked peers.
struct Processes {
  Processes(int size, int rounds, int missing) {
    auto group = ShmGroup::Create(size, kEpoch, {}).value();
    const std::string address = group->address();
    for (int rank = 1; rank < size; ++rank) {
      children.emplace_back([=] { return RunRank(address, rank, size, rounds, missing); });
    }
    comm = std::make_unique<ShmCommunicator>(std::move(group), stream);
  }

  kernels::ListStream stream;
  std::list<transport::ForkChild> children;
  std::unique_ptr<Communicator> comm;
};

TEST(ShmCommProcessTest, AllRanksGetTheSameBits) {
  for (int size : {2, 3, 4}) {
    constexpr int kRounds = 300;
    Processes processes(size, kRounds, -1);
    for (int round = 0; round < kRounds; ++round) {
      ASSERT_EQ(Round(*processes.comm, processes.stream, round, Long()), absl::OkStatus());
    }
    for (transport::ForkChild& child : processes.children) EXPECT_EQ(child.Wait(), kAllGood);
  }
}

// Rank 2 of 3 stops participating; the other ranks' errors name it, in bounded time.
void ExpectMissingRankIsNamed(Processes& processes) {
  const auto start = std::chrono::steady_clock::now();
  // Rounds that rank 2 had begun before may still succeed.
  absl::Status status;
  for (int round = 10; status.ok() && round < 20; ++round) {
    status = Round(*processes.comm, processes.stream, round, Short());
  }
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(60));
  EXPECT_EQ(status.code(), absl::StatusCode::kDeadlineExceeded) << status;
  EXPECT_NE(status.message().find("2 of 3"), absl::string_view::npos) << status;
  EXPECT_EQ(processes.children.front().Wait(), kNamedTheMissing);
}

TEST(ShmCommProcessTest, AKilledRankIsNamedAtTheDeadline) {
  Processes processes(3, 1 << 30, 2);
  for (int round = 0; round < 10; ++round) {
    ASSERT_EQ(Round(*processes.comm, processes.stream, round, Long()), absl::OkStatus());
  }
  processes.children.back().Signal(SIGKILL);
  EXPECT_EQ(processes.children.back().Wait(), -1);
  ExpectMissingRankIsNamed(processes);
}

TEST(ShmCommProcessTest, AStoppedRankIsNamedAtTheDeadlineAndLearnsItLater) {
  Processes processes(3, 1 << 30, 2);
  for (int round = 0; round < 10; ++round) {
    ASSERT_EQ(Round(*processes.comm, processes.stream, round, Long()), absl::OkStatus());
  }
  processes.children.back().Stop();
  ExpectMissingRankIsNamed(processes);
  processes.children.back().Signal(SIGCONT);
  EXPECT_EQ(processes.children.back().Wait(), kNamedTheMissing);
}

TEST(ShmCommProcessTest, AbortReachesOtherProcesses) {
  Processes processes(2, 1 << 30, 7);
  ASSERT_EQ(Round(*processes.comm, processes.stream, 0, Long()), absl::OkStatus());
  processes.comm->Abort(absl::UnavailableError("rank 7 of 2 is a test"));
  EXPECT_EQ(processes.children.back().Wait(), kNamedTheMissing);
}

}  // namespace
}  // namespace tandem::worker
