// An error of NCCL that arrives late, by ncclCommGetAsyncError: two ranks as threads, emulated.
#include "tools/cuda_emulation/nccl_fault.h"

#include <gtest/gtest.h>

#include <memory>
#include <thread>
#include <vector>

#include "common/base/status.h"
#include "tests/common/transport/memory_rendezvous.h"
#include "tools/cuda_emulation/emulated_backend.h"
#include "worker/comm/nccl_communicator.h"

namespace tandem::worker {
namespace {

constexpr size_t kFloats = 64;

Deadline Soon() { return Deadline::After(std::chrono::seconds(60)); }

// One rank with a graph of an all-reduce.
class FaultyRank {
 public:
  FaultyRank(int rank, transport::Rendezvous& rendezvous)
      : rank_(rank),
        rendezvous_(rendezvous),
        backend_(kernels::cuda::MakeEmulatedBackend().value()),
        buffer_(backend_->Allocate(kFloats * sizeof(float)).value()) {}

  absl::Status Join(Epoch epoch) {
    graph_ = nullptr;
    comm_ = nullptr;
    TANDEM_ASSIGN_OR_RETURN(comm_, OpenNcclCommunicator({.rank = rank_,
                                                         .size = 2,
                                                         .epoch = epoch,
                                                         .rendezvous = rendezvous_,
                                                         .device_stream = backend_->device_stream(),
                                                         .deadline = Soon()}));
    TANDEM_RETURN_IF_ERROR(comm_->Join(Soon()));
    backend_->BeginEncode(kernels::EncodeMode::kCapture);
    comm_->AllReduceSum(data(), kFloats);
    TANDEM_ASSIGN_OR_RETURN(graph_, backend_->graphs()->Finish());
    return absl::OkStatus();
  }

  // Has two replays in flight before it waits for either.
  std::vector<absl::Status> ReplayTwice() {
    std::vector<absl::StatusOr<kernels::Ticket>> tickets;
    for (int i = 0; i < 2; ++i) {
      backend_->BeginEncode(kernels::EncodeMode::kRun);
      backend_->graphs()->Replay(*graph_);
      tickets.push_back(backend_->Submit(Soon()));
    }
    std::vector<absl::Status> ends;
    for (const auto& ticket : tickets) {
      ends.push_back(ticket.ok() ? backend_->Wait(*ticket) : ticket.status());
    }
    return ends;
  }

  // Uploads 1, replays, and returns the sum.
  absl::StatusOr<float> Replay(Deadline deadline) {
    std::vector<float> values(kFloats, 1.0f);
    backend_->BeginEncode(kernels::EncodeMode::kRun);
    backend_->Upload(data(), values.data(), kFloats * sizeof(float));
    backend_->graphs()->Replay(*graph_);
    backend_->Download(values.data(), data(), kFloats * sizeof(float));
    TANDEM_RETURN_IF_ERROR(backend_->SubmitAndWait(deadline));
    return values[0];
  }

 private:
  float* data() const { return reinterpret_cast<float*>(buffer_.data()); }

  const int rank_;
  transport::Rendezvous& rendezvous_;
  const std::unique_ptr<kernels::Backend> backend_;
  const kernels::Buffer buffer_;
  std::unique_ptr<Communicator> comm_;
  std::unique_ptr<kernels::Graph> graph_;
};

class NcclFaultTest : public ::testing::TestWithParam<ncclResult_t> {
 protected:
  // Runs `body` on a thread per rank.
  template <typename Body>
  void OnBoth(const Body& body) {
    std::vector<std::thread> threads;
    for (int rank = 0; rank < 2; ++rank) threads.emplace_back([&, rank] { body(ranks_[rank]); });
    for (std::thread& thread : threads) thread.join();
  }

  transport::MemoryRendezvous rendezvous_;
  FaultyRank ranks_[2] = {{0, rendezvous_}, {1, rendezvous_}};
};

TEST_P(NcclFaultTest, EndsAReplayAndTheNextEpochWorks) {
  OnBoth([](FaultyRank& rank) {
    const absl::Status joined = rank.Join(Epoch{1});
    ASSERT_TRUE(joined.ok()) << joined;
    EXPECT_EQ(*rank.Replay(Soon()), 2.0f);
  });
  emulation::FailNcclLater({.rank = 0, .polls = 20, .result = GetParam()});
  // Rank 1 does not come; without the error rank 0 would wait for its deadline.
  const absl::Status failed = ranks_[0].Replay(Soon()).status();
  EXPECT_EQ(failed.code(), GetParam() == ncclRemoteError ? absl::StatusCode::kUnavailable
                                                         : absl::StatusCode::kInternal)
      << failed;
  EXPECT_NE(failed.message().find("asynchronous error"), absl::string_view::npos) << failed;
  emulation::FailNcclLater({});
  OnBoth([](FaultyRank& rank) {
    const absl::Status joined = rank.Join(Epoch{2});
    ASSERT_TRUE(joined.ok()) << joined;
    EXPECT_EQ(*rank.Replay(Soon()), 2.0f);
  });
}

TEST_P(NcclFaultTest, EndsBothReplaysInFlight) {
  OnBoth([](FaultyRank& rank) {
    ASSERT_TRUE(rank.Join(Epoch{1}).ok());
    EXPECT_EQ(rank.ReplayTwice(), std::vector<absl::Status>(2)) << "both are there";
  });
  emulation::FailNcclLater({.rank = 0, .polls = 20, .result = GetParam()});
  const std::vector<absl::Status> ends = ranks_[0].ReplayTwice();
  EXPECT_NE(ends[0].message().find("asynchronous error"), absl::string_view::npos) << ends[0];
  EXPECT_EQ(ends[1], ends[0]);
  emulation::FailNcclLater({});
  OnBoth([](FaultyRank& rank) {
    ASSERT_TRUE(rank.Join(Epoch{2}).ok());
    EXPECT_EQ(rank.ReplayTwice(), std::vector<absl::Status>(2));
  });
}

// The error is there at the first poll.
TEST_P(NcclFaultTest, EndsJoining) {
  emulation::FailNcclLater({.rank = 0, .polls = 0, .result = GetParam()});
  absl::Status joined[2];
  OnBoth([&](FaultyRank& rank) { joined[&rank - ranks_] = rank.Join(Epoch{1}); });
  emulation::FailNcclLater({});
  EXPECT_NE(joined[0].message().find("asynchronous error"), absl::string_view::npos) << joined[0];
}

INSTANTIATE_TEST_SUITE_P(Results, NcclFaultTest,
                         ::testing::Values(ncclRemoteError, ncclSystemError), [](const auto& test) {
                           return test.param == ncclRemoteError ? "remote" : "system";
                         });

}  // namespace
}  // namespace tandem::worker
