#include "tests/contract/host_group_contract.h"

#include <atomic>

#include "absl/strings/str_cat.h"
#include "tests/contract/run_ranks.h"

namespace tandem::transport {
namespace {

constexpr int kSizes[] = {1, 2, 3, 4};

Deadline Long() { return Deadline::After(std::chrono::seconds(60)); }
Deadline Short() { return Deadline::After(std::chrono::milliseconds(200)); }

bool Mentions(const absl::Status& status, const std::string& part) {
  return status.message().find(part) != absl::string_view::npos;
}

std::string ValueOf(int rank, int round) {
  // Every few rounds a long one.
  return absl::StrCat("rank ", rank, " round ", round, std::string(round % 7 == 0 ? 5000 : 0, 'x'));
}

TEST_P(HostGroupContract, KnowsItsRankAndSize) {
  for (int size : kSizes) {
    const auto group = GetParam().make(size);
    ASSERT_EQ(group.size(), static_cast<size_t>(size));
    for (int rank = 0; rank < size; ++rank) {
      EXPECT_EQ(group[rank]->rank(), rank);
      EXPECT_EQ(group[rank]->size(), size);
    }
  }
}

TEST_P(HostGroupContract, NobodyPassesABarrierBeforeAllHaveArrived) {
  for (int size : kSizes) {
    const auto group = GetParam().make(size);
    std::atomic<int> arrived{0};
    RunRanks(size, [&](int rank) {
      for (int round = 1; round <= 50; ++round) {
        arrived.fetch_add(1);
        EXPECT_EQ(group[rank]->Barrier(Long()), absl::OkStatus());
        EXPECT_GE(arrived.load(), round * size);
      }
    });
  }
}

TEST_P(HostGroupContract, BroadcastGivesTheRootsValue) {
  for (int size : kSizes) {
    const auto group = GetParam().make(size);
    RunRanks(size, [&](int rank) {
      for (int root = 0; root < size; ++root) {
        const auto value = group[rank]->Broadcast(ValueOf(rank, 7), root, Long());
        ASSERT_TRUE(value.ok()) << value.status();
        EXPECT_EQ(*value, ValueOf(root, 7));
      }
    });
  }
}

TEST_P(HostGroupContract, ExchangeGivesEveryValueInRankOrder) {
  for (int size : kSizes) {
    const auto group = GetParam().make(size);
    RunRanks(size, [&](int rank) {
      const auto empty = group[rank]->Exchange("", Long());
      ASSERT_TRUE(empty.ok()) << empty.status();
      EXPECT_EQ(*empty, std::vector<std::string>(size));
      const auto values = group[rank]->Exchange(ValueOf(rank, 0), Long());
      ASSERT_TRUE(values.ok()) << values.status();
      ASSERT_EQ(values->size(), static_cast<size_t>(size));
      for (int r = 0; r < size; ++r) EXPECT_EQ((*values)[r], ValueOf(r, 0));
    });
  }
}

TEST_P(HostGroupContract, CallsOfAllKindsFollowEachOther) {
  const int size = 3;
  const auto group = GetParam().make(size);
  RunRanks(size, [&](int rank) {
    for (int round = 0; round < 200; ++round) {
      if (round % 3 == 0) {
        ASSERT_EQ(group[rank]->Barrier(Long()), absl::OkStatus());
      } else if (round % 3 == 1) {
        const auto value = group[rank]->Broadcast(ValueOf(rank, round), round % size, Long());
        ASSERT_TRUE(value.ok()) << value.status();
        EXPECT_EQ(*value, ValueOf(round % size, round));
      } else {
        const auto values = group[rank]->Exchange(ValueOf(rank, round), Long());
        ASSERT_TRUE(values.ok()) << values.status();
        for (int r = 0; r < size; ++r) EXPECT_EQ((*values)[r], ValueOf(r, round));
      }
    }
  });
}

TEST_P(HostGroupContract, AMissingRankIsNamedAndTheGroupIsBroken) {
  const int size = 4;
  for (int missing = 0; missing < size; ++missing) {
    const auto group = GetParam().make(size);
    RunRanks(size, [&](int rank) {
      ASSERT_EQ(group[rank]->Barrier(Long()), absl::OkStatus());
      if (rank == missing) return;
      // Rank 0 finds out and tells the others, unless it is the missing one.
      const Deadline deadline = rank == 0 || missing == 0 ? Short() : Long();
      const absl::Status status = group[rank]->Exchange("here", deadline).status();
      EXPECT_FALSE(status.ok());
      if (missing != 0 || rank == 0) {
        EXPECT_TRUE(Mentions(status, absl::StrCat("rank ", missing))) << rank << ": " << status;
      } else {
        EXPECT_TRUE(Mentions(status, "rank 0")) << rank << ": " << status;
      }
      EXPECT_FALSE(group[rank]->Barrier(Long()).ok());
    });
    EXPECT_FALSE(group[missing]->Barrier(Short()).ok());
  }
}

TEST_P(HostGroupContract, DifferentCallsAreAnError) {
  const auto group = GetParam().make(2);
  RunRanks(2, [&](int rank) {
    const absl::Status status =
        rank == 0 ? group[0]->Barrier(Long()) : group[1]->Exchange("x", Long()).status();
    EXPECT_FALSE(status.ok());
    EXPECT_TRUE(Mentions(status, "barrier") && Mentions(status, "exchange")) << status;
  });
}

}  // namespace
}  // namespace tandem::transport
