// What of the NCCL communicator shows without a GPU: the way in, and errors. Its life is
// communicator_watch_test.cc's business; collectives need GPUs.
#include "worker/comm/nccl_communicator.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <memory>
#include <string>

#include "tests/common/transport/memory_rendezvous.h"

namespace tandem::worker {
namespace {

class NoStream : public kernels::DeviceStream {
 public:
  void* handle() override { return nullptr; }
  void SetWatch(kernels::StreamWatch* watch) override { watch_ = watch; }
  void NoteError(const absl::Status& error) override { error_ = error; }

  kernels::StreamWatch* watch_ = nullptr;
  absl::Status error_;
};

class NcclCommunicatorTest : public ::testing::Test {
 protected:
  absl::StatusOr<std::unique_ptr<Communicator>> Open(int rank, int size, Deadline deadline) {
    return OpenNcclCommunicator({.rank = rank,
                                 .size = size,
                                 .epoch = Epoch{7},
                                 .rendezvous = rendezvous_,
                                 .device_stream = &stream_,
                                 .deadline = deadline});
  }

  transport::MemoryRendezvous rendezvous_;
  NoStream stream_;
};

Deadline Soon() { return Deadline::After(std::chrono::seconds(60)); }

TEST_F(NcclCommunicatorTest, ARankWithoutAnIdIsNotWaitedForForever) {
  const auto missing = Open(1, 2, Deadline::After(Duration::zero())).status();
  EXPECT_EQ(missing.code(), absl::StatusCode::kDeadlineExceeded);
  EXPECT_NE(missing.message().find("nccl/7"), absl::string_view::npos) << missing;
}

TEST_F(NcclCommunicatorTest, AnIdOfAnotherLengthIsRefused) {
  ASSERT_TRUE(rendezvous_.Put("nccl/7", "short").ok());
  EXPECT_EQ(Open(1, 2, Soon()).status().code(), absl::StatusCode::kInternal);
}

TEST_F(NcclCommunicatorTest, WithoutADriverTheErrorIsOneLine) {
  if (std::filesystem::exists("/dev/nvidiactl")) {
    GTEST_SKIP() << "this machine has an NVIDIA driver";
  }
  auto opened = Open(0, 1, Soon());
  absl::Status status = opened.status();
  if (opened.ok()) {
    status = (*opened)->Join(Soon());
    // Once that has failed, collectives only say so.
    float value = 0;
    (*opened)->AllReduceSum(&value, 1);
    EXPECT_EQ(stream_.error_, status);
  }
  EXPECT_FALSE(status.ok());
  EXPECT_NE(status.message().find("CUDA driver"), absl::string_view::npos) << status;
  EXPECT_EQ(status.message().find('\n'), absl::string_view::npos) << status;
}

TEST_F(NcclCommunicatorTest, AnAbortBeforeJoinEndsJoin) {
  auto opened = Open(0, 2, Soon());
  if (!opened.ok()) GTEST_SKIP() << "NCCL makes no id here: " << opened.status();
  (*opened)->Abort(absl::AbortedError("rank 1 is gone"));
  EXPECT_EQ((*opened)->Join(Soon()), absl::AbortedError("rank 1 is gone"));
  EXPECT_EQ(stream_.watch_, nullptr);
}

}  // namespace
}  // namespace tandem::worker
