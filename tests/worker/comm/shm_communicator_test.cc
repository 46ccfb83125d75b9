// How ranks find each other, and how they leave.
#include "worker/comm/shm_communicator.h"

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/base/status.h"
#include "gtest/gtest.h"
#include "tests/common/transport/memory_rendezvous.h"
#include "tests/contract/host_streams.h"
#include "tests/contract/run_ranks.h"
#include "worker/comm/open_communicator.h"

namespace tandem::worker {
namespace {

using absl::StatusCode;

constexpr Epoch kEpoch{9};

Deadline Long() { return Deadline::After(std::chrono::seconds(60)); }
Deadline Short() { return Deadline::After(std::chrono::milliseconds(100)); }

bool Mentions(const absl::Status& status, const std::string& part) {
  return status.message().find(part) != absl::string_view::npos;
}

// Opened and joined.
absl::StatusOr<std::unique_ptr<Communicator>> Meet(int rank, int size,
                                                   transport::Rendezvous& rendezvous,
                                                   kernels::HostStream& stream, Deadline deadline) {
  TANDEM_ASSIGN_OR_RETURN(auto comm, OpenCommunicator({.rank = rank,
                                                       .size = size,
                                                       .epoch = kEpoch,
                                                       .rendezvous = rendezvous,
                                                       .host_stream = &stream,
                                                       .deadline = deadline}));
  TANDEM_RETURN_IF_ERROR(comm->Join(deadline));
  return comm;
}

TEST(ShmCommunicatorTest, RanksFindEachOtherThroughTheRendezvous) {
  for (int size : {1, 2, 4}) {
    transport::MemoryRendezvous rendezvous;
    RunRanks(size, [&](int rank) {
      kernels::ListStream stream;
      auto comm = Meet(rank, size, rendezvous, stream, Long());
      ASSERT_TRUE(comm.ok()) << comm.status();
      float value = static_cast<float>(rank + 1);
      (*comm)->AllReduceSum(&value, 1);
      ASSERT_EQ(stream.Run(Long()), absl::OkStatus());
      EXPECT_EQ(value, size * (size + 1) / 2.0f);
      // A rank that leaves after its last collective takes nothing from those that still read.
    });
  }
}

TEST(ShmCommunicatorTest, MeasuresEveryKindOfCollective) {
  transport::MemoryRendezvous rendezvous;
  RunRanks(2, [&](int rank) {
    kernels::ListStream stream;
    auto comm = Meet(rank, 2, rendezvous, stream, Long());
    ASSERT_TRUE(comm.ok()) << comm.status();
    ASSERT_EQ((*comm)->TimeSpent(), Duration::zero());
    float value = 1;
    float values[2];
    using Issue = std::function<void(Communicator&)>;
    for (const Issue& issue :
         std::vector<Issue>{[&](Communicator& c) { c.AllReduceSum(&value, 1); },
                            [&](Communicator& c) { c.Gather(&value, sizeof(value), values, 0); },
                            [&](Communicator& c) { c.AllGather(&value, sizeof(value), values); },
                            [&](Communicator& c) { c.Broadcast(&value, sizeof(value), 1); }}) {
      const Duration before = (*comm)->TimeSpent().value();
      issue(**comm);
      EXPECT_EQ((*comm)->TimeSpent(), before) << "enqueued, not run";
      ASSERT_EQ(stream.Run(Long()), absl::OkStatus());
      EXPECT_GT((*comm)->TimeSpent(), before);
    }
  });
}

TEST(ShmCommunicatorTest, ARankThatDoesNotJoinIsNamed) {
  transport::MemoryRendezvous rendezvous;
  kernels::ListStream streams[2];  // outlive the communicators
  std::unique_ptr<Communicator> comms[2];
  RunRanks(2, [&](int rank) {
    auto comm = OpenCommunicator({.rank = rank,
                                  .size = 3,
                                  .epoch = kEpoch,
                                  .rendezvous = rendezvous,
                                  .host_stream = &streams[rank],
                                  .deadline = Long()});
    ASSERT_TRUE(comm.ok()) << comm.status();
    comms[rank] = std::move(*comm);
  });
  RunRanks(2, [&](int rank) {
    const absl::Status status = comms[rank]->Join(rank == 0 ? Short() : Long());
    comms[rank].reset();  // rank 1 waits no longer than rank 0 is there
    EXPECT_FALSE(status.ok());
    EXPECT_TRUE(Mentions(status, "2 of 3") || Mentions(status, "has left")) << status;
  });
}

TEST(ShmCommunicatorTest, WithoutRankZeroTheRendezvousFails) {
  transport::MemoryRendezvous rendezvous;
  kernels::ListStream stream;
  const absl::Status status = Meet(1, 2, rendezvous, stream, Short()).status();
  EXPECT_EQ(status.code(), StatusCode::kDeadlineExceeded);
  EXPECT_TRUE(Mentions(status, "communicator/9")) << status;
}

TEST(OpenCommunicatorTest, ABackendWithoutAStreamHasNone) {
  transport::MemoryRendezvous rendezvous;
  const CommunicatorParts parts{
      .rank = 0, .size = 2, .epoch = kEpoch, .rendezvous = rendezvous, .deadline = Long()};
  EXPECT_EQ(OpenCommunicator(parts).status().code(), StatusCode::kUnimplemented);
}

TEST(ShmGroupTest, RefusesAnotherEpochSizeOrATakenRank) {
  auto first = ShmGroup::Create(2, kEpoch, {}).value();
  EXPECT_EQ(ShmGroup::Open(first->address(), 1, 2, Epoch{8}, {}).status().code(),
            StatusCode::kFailedPrecondition);
  EXPECT_EQ(ShmGroup::Open(first->address(), 1, 3, kEpoch, {}).status().code(),
            StatusCode::kInvalidArgument);
  EXPECT_EQ(ShmGroup::Open(first->address(), 1, 2, kEpoch, {.buffer_bytes = 4096}).status().code(),
            StatusCode::kInvalidArgument);
  EXPECT_EQ(ShmGroup::Open(first->address(), 0, 2, kEpoch, {}).status().code(),
            StatusCode::kFailedPrecondition);
  auto second = ShmGroup::Open(first->address(), 1, 2, kEpoch, {});
  ASSERT_TRUE(second.ok()) << second.status();
  EXPECT_EQ(ShmGroup::Open(first->address(), 1, 2, kEpoch, {}).status().code(),
            StatusCode::kFailedPrecondition);
}

TEST(ShmGroupTest, ARankThatLeavesIsNamedAtOnce) {
  auto first = ShmGroup::Create(2, kEpoch, {}).value();
  auto second = first->OpenHere(1).value();
  kernels::ListStream stream;
  ShmCommunicator comm(std::move(first), stream);
  second.reset();
  float value = 1;
  comm.AllReduceSum(&value, 1);
  const absl::Status status = stream.Run(Long());
  EXPECT_EQ(status.code(), StatusCode::kUnavailable);
  EXPECT_TRUE(Mentions(status, "rank 1 of 2 has left")) << status;
}

TEST(ShmGroupTest, ArrivalsWrap) {
  // Beyond 2^30 arrivals the count starts over; far fewer are walked here, by starting shortly
  // before.
  const ShmGroupOptions options{.buffer_bytes = 4096};
  auto first = ShmGroup::Create(2, kEpoch, options).value();
  auto second = first->OpenHere(1).value();
  first->testing_SetArrivals((1u << 30) - 20);
  second->testing_SetArrivals((1u << 30) - 20);
  ShmGroup* groups[] = {first.get(), second.get()};
  RunRanks(2, [&](int rank) {
    kernels::InlineStream stream;
    for (int i = 0; i < 100; ++i) {
      const CollectiveTag tag{CollectiveKind::kAllReduce, 0, 4};
      ASSERT_EQ(groups[rank]->Begin(tag, Long()), absl::OkStatus());
      *groups[rank]->buffer(rank) = static_cast<std::byte>(i + rank);
      groups[rank]->Arrive();
      ASSERT_EQ(groups[rank]->AwaitAll(Long()), absl::OkStatus());
      EXPECT_EQ(*groups[rank]->buffer(1 - rank), static_cast<std::byte>(i + 1 - rank));
    }
  });
}

}  // namespace
}  // namespace tandem::worker
