#include "tests/contract/communicator_contract.h"

#include <atomic>
#include <cstring>
#include <random>
#include <thread>

#include "absl/strings/str_cat.h"
#include "tests/contract/host_streams.h"
#include "tests/contract/run_ranks.h"

namespace tandem::worker {
namespace {

constexpr int kSizes[] = {1, 2, 3, 4};
// Around the chunks of 4 KiB and 256 KiB that the instantiations use.
constexpr size_t kCounts[] = {0, 1, 7, 1023, 1024, 1025, 5001, 65535, 65536, 65537, 150001};

Deadline Long() { return Deadline::After(std::chrono::seconds(60)); }
Deadline Short() { return Deadline::After(std::chrono::milliseconds(100)); }

bool Mentions(const absl::Status& status, const std::string& part) {
  return status.message().find(part) != absl::string_view::npos;
}

// The error lists the rank: "rank 3 of 4", or "rank 1, 3 of 4" where a slow thread is late as well.
bool NamesRank(const absl::Status& status, int rank) {
  const std::string message(status.message());
  const size_t begin = message.find("rank ");
  const size_t end = message.find(" of ");
  if (begin == std::string::npos || end == std::string::npos || end < begin) return false;
  return message.substr(begin, end - begin).find(std::to_string(rank)) != std::string::npos;
}

class HostRank : public ContractRank {
 public:
  Communicator& comm() override { return *own; }
  absl::Status Run(Deadline deadline) override { return stream.Run(deadline); }

  kernels::ListStream stream;
  std::unique_ptr<Communicator> own;
};

// All ranks of a communicator.
struct Ranks {
  Ranks(const CommunicatorFactory& factory, int size, bool join = true)
      : factory_(factory), all_(factory.make(size)) {
    if (!join) return;
    RunRanks(size, [&](int rank) { EXPECT_EQ(comm(rank).Join(Long()), absl::OkStatus()); });
  }

  Communicator& comm(int rank) { return all_[rank]->comm(); }
  absl::Status Run(int rank, Deadline deadline) { return all_[rank]->Run(deadline); }
  // At `rank`, and wherever else an abort there does not reach.
  void Abort(int rank, const absl::Status& reason) {
    AbortWhere(rank, factory_.ranks_know_each_other, reason);
  }
  void AbortJoin(int rank, const absl::Status& reason) {
    AbortWhere(rank, factory_.ranks_know_each_other && factory_.aborts_end_joins_of_others, reason);
  }

 private:
  void AbortWhere(int rank, bool reaches_all, const absl::Status& reason) {
    for (size_t each = 0; each < all_.size(); ++each) {
      if (!reaches_all || static_cast<int>(each) == rank) all_[each]->comm().Abort(reason);
    }
  }

  const CommunicatorFactory& factory_;
  const std::vector<std::unique_ptr<ContractRank>> all_;
};

// Of very different magnitudes, so that the order of additions shows in the bits.
std::vector<float> Values(int rank, size_t count, int seed = 0) {
  std::mt19937 random(1000 * seed + rank);
  std::vector<float> values(count);
  for (float& value : values) {
    const int exponent = static_cast<int>(random() % 24);
    value = static_cast<float>(static_cast<int>(random() % 2001) - 1000) *
            static_cast<float>(1 << exponent);
  }
  return values;
}

std::vector<float> SumOfValues(int size, size_t count, int seed = 0) {
  std::vector<float> sum = Values(0, count, seed);
  for (int rank = 1; rank < size; ++rank) {
    const std::vector<float> values = Values(rank, count, seed);
    for (size_t i = 0; i < count; ++i) sum[i] += values[i];
  }
  return sum;
}

bool SameBits(const std::vector<float>& a, const std::vector<float>& b) {
  return a.size() == b.size() &&
         (a.empty() || std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0);
}

std::vector<uint8_t> Bytes(int rank, size_t count, int seed = 0) {
  std::mt19937 random(77 * seed + rank);
  std::vector<uint8_t> bytes(count);
  for (uint8_t& byte : bytes) byte = static_cast<uint8_t>(random());
  return bytes;
}

std::vector<uint8_t> AllBytes(int size, size_t count, int seed = 0) {
  std::vector<uint8_t> all;
  for (int rank = 0; rank < size; ++rank) {
    const std::vector<uint8_t> bytes = Bytes(rank, count, seed);
    all.insert(all.end(), bytes.begin(), bytes.end());
  }
  return all;
}

TEST_P(CommunicatorContract, HasItsRankAndSize) {
  for (int size : kSizes) {
    Ranks ranks(GetParam(), size);
    for (int rank = 0; rank < size; ++rank) {
      EXPECT_EQ(ranks.comm(rank).rank(), rank);
      EXPECT_EQ(ranks.comm(rank).size(), size);
    }
  }
}

TEST_P(CommunicatorContract, JoinReturnsWhenAllHaveJoined) {
  for (int size : kSizes) {
    Ranks ranks(GetParam(), size, /*join=*/false);
    std::atomic<int> called = 0;
    RunRanks(size, [&](int rank) {
      ++called;
      EXPECT_EQ(ranks.comm(rank).Join(Long()), absl::OkStatus());
      EXPECT_EQ(called, size);
    });
    RunRanks(size, [&](int rank) {
      float value = static_cast<float>(rank + 1);
      ranks.comm(rank).AllReduceSum(&value, 1);
      EXPECT_EQ(ranks.Run(rank, Long()), absl::OkStatus());
      EXPECT_EQ(value, static_cast<float>(size * (size + 1) / 2));
    });
  }
}

TEST_P(CommunicatorContract, JoinNamesTheMissingRank) {
  Ranks ranks(GetParam(), 3, /*join=*/false);
  RunRanks(3, [&](int rank) {
    if (rank == 1) return;
    const absl::Status status = ranks.comm(rank).Join(Short());
    EXPECT_EQ(status.code(), absl::StatusCode::kDeadlineExceeded) << status;
    EXPECT_TRUE(!GetParam().ranks_know_each_other || NamesRank(status, 1)) << status;
  });
}

TEST_P(CommunicatorContract, AbortEndsJoinAlsoWhenItCameBefore) {
  const absl::Status reason = absl::UnavailableError("rank 0 was lost");
  for (const bool before : {true, false}) {
    Ranks ranks(GetParam(), 3, /*join=*/false);
    if (before) ranks.AbortJoin(1, reason);
    RunRanks(3, [&](int rank) {
      if (rank == 0) {
        if (!before) ranks.AbortJoin(2, reason);
        return;
      }
      EXPECT_EQ(ranks.comm(rank).Join(Long()), reason);
    });
  }
}

TEST_P(CommunicatorContract, AllReduceAddsInRankOrderOnEveryRank) {
  for (int size : kSizes) {
    Ranks ranks(GetParam(), size);
    for (size_t count : kCounts) {
      const std::vector<float> expected = SumOfValues(size, count);
      RunRanks(size, [&](int rank) {
        std::vector<float> data = Values(rank, count);
        ranks.comm(rank).AllReduceSum(data.data(), count);
        EXPECT_EQ(ranks.Run(rank, Long()), absl::OkStatus());
        EXPECT_TRUE(SameBits(data, expected)) << "rank " << rank << "/" << size << " " << count;
      });
    }
  }
}

// The inputs of the test above must be able to show a wrong order.
TEST(CommunicatorContractTest, OrderShowsInTheBits) {
  std::vector<float> reversed = Values(2, 1000);
  for (int rank : {1, 0}) {
    const std::vector<float> values = Values(rank, 1000);
    for (size_t i = 0; i < values.size(); ++i) reversed[i] += values[i];
  }
  EXPECT_FALSE(SameBits(reversed, SumOfValues(3, 1000)));
}

TEST_P(CommunicatorContract, GatherFillsOnlyTheRoot) {
  for (int size : kSizes) {
    Ranks ranks(GetParam(), size);
    for (int root = 0; root < size; ++root) {
      for (size_t bytes : {size_t{0}, size_t{1}, size_t{4095}, size_t{4097}, size_t{300001}}) {
        RunRanks(size, [&](int rank) {
          const std::vector<uint8_t> send = Bytes(rank, bytes);
          const std::vector<uint8_t> untouched(bytes * size, 0xab);
          std::vector<uint8_t> recv = untouched;
          ranks.comm(rank).Gather(send.data(), bytes, recv.data(), root);
          EXPECT_EQ(ranks.Run(rank, Long()), absl::OkStatus());
          EXPECT_TRUE(recv == (rank == root ? AllBytes(size, bytes) : untouched))
              << "rank " << rank << "/" << size << " " << bytes;
        });
      }
    }
  }
}

TEST_P(CommunicatorContract, GatherWithoutTheRootsPart) {
  for (int size : kSizes) {
    Ranks ranks(GetParam(), size);
    for (int root = 0; root < size; ++root) {
      for (size_t bytes : {size_t{1}, size_t{4097}, size_t{300001}}) {
        RunRanks(size, [&](int rank) {
          const std::vector<uint8_t> send = Bytes(rank, bytes);
          std::vector<uint8_t> recv(bytes * size, 0xab);
          std::vector<uint8_t> expected = rank == root ? AllBytes(size, bytes) : recv;
          std::fill_n(expected.begin() + static_cast<ptrdiff_t>(root * bytes), bytes, 0xab);
          ranks.comm(rank).Gather(rank == root ? nullptr : send.data(), bytes, recv.data(), root);
          EXPECT_EQ(ranks.Run(rank, Long()), absl::OkStatus());
          EXPECT_TRUE(recv == expected) << "rank " << rank << "/" << size << " " << bytes;
        });
      }
    }
  }
}

TEST_P(CommunicatorContract, AllGatherFillsEveryRank) {
  for (int size : kSizes) {
    Ranks ranks(GetParam(), size);
    for (size_t bytes : {size_t{0}, size_t{1}, size_t{4095}, size_t{4097}, size_t{300001}}) {
      for (bool in_place : {false, true}) {
        RunRanks(size, [&](int rank) {
          const std::vector<uint8_t> own = Bytes(rank, bytes);
          std::vector<uint8_t> recv(bytes * size, 0xab);
          const uint8_t* send = own.data();
          if (in_place && bytes > 0) {
            std::memcpy(recv.data() + rank * bytes, own.data(), bytes);
            send = recv.data() + rank * bytes;
          }
          ranks.comm(rank).AllGather(send, bytes, recv.data());
          EXPECT_EQ(ranks.Run(rank, Long()), absl::OkStatus());
          EXPECT_TRUE(recv == AllBytes(size, bytes))
              << "rank " << rank << "/" << size << " " << bytes;
        });
      }
    }
  }
}

TEST_P(CommunicatorContract, BroadcastGivesTheRootsBytes) {
  for (int size : kSizes) {
    Ranks ranks(GetParam(), size);
    for (int root = 0; root < size; ++root) {
      for (size_t bytes : {size_t{0}, size_t{1}, size_t{4096}, size_t{4097}, size_t{300001}}) {
        RunRanks(size, [&](int rank) {
          std::vector<uint8_t> data = Bytes(rank, bytes);
          ranks.comm(rank).Broadcast(data.data(), bytes, root);
          EXPECT_EQ(ranks.Run(rank, Long()), absl::OkStatus());
          EXPECT_TRUE(data == Bytes(root, bytes)) << "rank " << rank << "/" << size << " " << bytes;
        });
      }
    }
  }
}

// One list of many collectives of all kinds; ranks wait for each other only in the collectives.
TEST_P(CommunicatorContract, MixedCollectivesFollowEachOther) {
  constexpr int kRounds = 100;
  for (int size : kSizes) {
    Ranks ranks(GetParam(), size);
    RunRanks(size, [&](int rank) {
      Communicator& comm = ranks.comm(rank);
      std::mt19937 random(size);  // the same program on every rank
      std::vector<std::vector<float>> sums(kRounds);
      std::vector<std::vector<uint8_t>> sends(kRounds), recvs(kRounds);
      std::vector<int> kinds(kRounds), roots(kRounds);
      for (int i = 0; i < kRounds; ++i) {
        kinds[i] = static_cast<int>(random() % 4);
        roots[i] = static_cast<int>(random() % size);
        const size_t count = random() % (random() % 8 == 0 ? 20000 : 300);
        sums[i] = Values(rank, count, i);
        sends[i] = Bytes(rank, count, i);
        recvs[i].resize(count * size);
        if (kinds[i] == 0) comm.AllReduceSum(sums[i].data(), count);
        if (kinds[i] == 1) comm.Gather(sends[i].data(), count, recvs[i].data(), roots[i]);
        if (kinds[i] == 2) comm.AllGather(sends[i].data(), count, recvs[i].data());
        if (kinds[i] == 3) comm.Broadcast(sends[i].data(), count, roots[i]);
      }
      ASSERT_EQ(ranks.Run(rank, Long()), absl::OkStatus());
      for (int i = 0; i < kRounds; ++i) {
        const size_t count = sends[i].size();
        if (kinds[i] == 0) {
          EXPECT_TRUE(SameBits(sums[i], SumOfValues(size, count, i))) << i;
        }
        if (kinds[i] == 2 || (kinds[i] == 1 && rank == roots[i])) {
          EXPECT_TRUE(recvs[i] == AllBytes(size, count, i)) << i;
        }
        if (kinds[i] == 3) {
          EXPECT_TRUE(sends[i] == Bytes(roots[i], count, i)) << i;
        }
      }
    });
  }
}

TEST_P(CommunicatorContract, AMissingRankIsNamedOnEveryRank) {
  for (int size : {2, 3, 4}) {
    for (int missing = 0; missing < size; ++missing) {
      Ranks ranks(GetParam(), size);
      std::vector<absl::Status> statuses(size);
      RunRanks(size, [&](int rank) {
        std::vector<float> data(100, 1.0f);
        ranks.comm(rank).AllReduceSum(data.data(), data.size());
        ASSERT_EQ(ranks.Run(rank, Long()), absl::OkStatus());
        if (rank == missing) return;
        ranks.comm(rank).AllReduceSum(data.data(), data.size());
        statuses[rank] = ranks.Run(rank, Short());
      });
      for (int rank = 0; rank < size; ++rank) {
        if (rank == missing) continue;
        EXPECT_EQ(statuses[rank].code(), absl::StatusCode::kDeadlineExceeded) << statuses[rank];
        if (!GetParam().ranks_know_each_other) continue;
        EXPECT_TRUE(NamesRank(statuses[rank], missing)) << statuses[rank];
      }
      if (!GetParam().ranks_know_each_other) continue;
      // The late rank learns it too.
      std::vector<float> data(100, 1.0f);
      ranks.comm(missing).AllReduceSum(data.data(), data.size());
      EXPECT_EQ(ranks.Run(missing, Long()).code(), absl::StatusCode::kDeadlineExceeded);
    }
  }
}

TEST_P(CommunicatorContract, AbortEndsPendingAndLaterCollectivesOnEveryRank) {
  const absl::Status reason = absl::UnavailableError("rank 0 was lost");
  for (int round = 0; round < 20; ++round) {
    const int size = 2 + round % 3;
    Ranks ranks(GetParam(), size);
    std::thread aborter([&] {
      for (int i = 0; i < round * 30; ++i) std::this_thread::yield();
      ranks.Abort(round % size, reason);
    });
    RunRanks(size, [&](int rank) {
      std::vector<float> data(5000, 1.0f);
      std::vector<float> all(5000 * size);
      Communicator& comm = ranks.comm(rank);
      if (rank != 0) {
        comm.AllReduceSum(data.data(), data.size());
        EXPECT_EQ(ranks.Run(rank, Long()), reason);
      }
    });
    aborter.join();
    for (int rank = 0; rank < size; ++rank) {
      std::vector<float> data(10, 1.0f);
      std::vector<float> all(10 * size);
      Communicator& comm = ranks.comm(rank);
      for (int kind = 0; kind < 4; ++kind) {
        if (kind == 0) comm.AllReduceSum(data.data(), data.size());
        if (kind == 1) comm.Gather(data.data(), 40, all.data(), 0);
        if (kind == 2) comm.AllGather(data.data(), 40, all.data());
        if (kind == 3) comm.Broadcast(data.data(), 40, 0);
        EXPECT_EQ(ranks.Run(rank, Long()), reason) << kind;
      }
    }
  }
}

TEST_P(CommunicatorContract, TheFirstReasonStaysAndIsAnError) {
  Ranks ranks(GetParam(), 2);
  ranks.Abort(0, absl::OkStatus());
  ranks.Abort(1, absl::InternalError("later"));
  float value = 1;
  ranks.comm(1).AllReduceSum(&value, 1);
  EXPECT_EQ(ranks.Run(1, Long()).code(), absl::StatusCode::kAborted);
}

TEST_P(CommunicatorContract, DifferentCollectivesAreAnError) {
  if (!GetParam().ranks_know_each_other) GTEST_SKIP() << "they are not compared";
  Ranks ranks(GetParam(), 2);
  RunRanks(2, [&](int rank) {
    std::vector<float> data(100, 1.0f);
    ranks.comm(rank).AllReduceSum(data.data(), rank == 0 ? 100 : 99);
    const absl::Status status = ranks.Run(rank, Long());
    EXPECT_EQ(status.code(), absl::StatusCode::kInternal) << status;
    EXPECT_TRUE(Mentions(status, "400 bytes") && Mentions(status, "396 bytes")) << status;
  });
}

}  // namespace
std::vector<std::unique_ptr<ContractRank>> OnHostStreams(
    int size, const std::function<std::vector<std::unique_ptr<Communicator>>(
                  const std::vector<kernels::HostStream*>& streams)>& make) {
  std::vector<std::unique_ptr<ContractRank>> ranks;
  std::vector<kernels::HostStream*> streams;
  for (int rank = 0; rank < size; ++rank) {
    auto made = std::make_unique<HostRank>();
    streams.push_back(&made->stream);
    ranks.push_back(std::move(made));
  }
  std::vector<std::unique_ptr<Communicator>> comms = make(streams);
  for (int rank = 0; rank < size; ++rank) {
    static_cast<HostRank&>(*ranks[rank]).own = std::move(comms[rank]);
  }
  return ranks;
}

}  // namespace tandem::worker
