// Two submissions in flight on the CUDA backend, under emulation: their order, and what becomes of
// the second if the first fails.
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "common/base/clock.h"
#include "common/base/step_guard.h"
#include "kernels/cuda/cuda_backend.h"
#include "tools/cuda_emulation/runtime.h"

namespace tandem::kernels::cuda {
namespace {

constexpr uint32_t kDim = 8;
constexpr size_t kBytes = kDim * sizeof(float);

Deadline Soon() { return Deadline::After(std::chrono::minutes(1)); }

class InFlightTest : public testing::Test {
 protected:
  void SetUp() override {
    ASSERT_TRUE(backend_->Open().ok());
    x_ = reinterpret_cast<float*>(Keep(backend_->Allocate(kBytes)));
    one_ = reinterpret_cast<float*>(Keep(backend_->Allocate(kBytes)));
    float* const ones = Host(1);
    backend_->BeginEncode(EncodeMode::kRun);
    backend_->Upload(one_, ones, kBytes);
    ASSERT_TRUE(backend_->SubmitAndWait(Soon()).ok());
  }

  // Page-locked memory.
  float* Host(float value) {
    auto* const data = reinterpret_cast<float*>(Keep(backend_->AllocateHost(kBytes)));
    std::fill_n(data, kDim, value);
    return data;
  }

  // Encodes x += 1, then a copy of x to `out`, and submits.
  absl::StatusOr<Ticket> Count(float* out, Deadline deadline = Soon()) {
    backend_->BeginEncode(EncodeMode::kRun);
    return CountInSame(out, deadline);
  }
  absl::StatusOr<Ticket> CountInSame(float* out, Deadline deadline = Soon()) {
    backend_->Encode(AddRowsParams{x_, one_, nullptr, 1, kDim});
    backend_->Download(out, x_, kBytes);
    return backend_->Submit(deadline);
  }

  // Encodes work that is not ready until `done`.
  void HoldUntil(std::function<bool()> done) {
    Enqueue([done = std::move(done)] { return done() ? cudaSuccess : cudaErrorNotReady; });
  }
  void Enqueue(std::function<cudaError_t()> work) {
    const auto stream = static_cast<cudaStream_t>(backend_->handle());
    ASSERT_EQ(emulation::Enqueue(stream, std::move(work)), cudaSuccess);
  }

  std::unique_ptr<CudaBackend> backend_ = std::make_unique<CudaBackend>("cuda-emulated");
  std::vector<Buffer> buffers_;
  float* x_ = nullptr;
  float* one_ = nullptr;

 private:
  std::byte* Keep(absl::StatusOr<Buffer> buffer) {
    buffers_.push_back(std::move(buffer).value());
    return buffers_.back().data();
  }
};

TEST_F(InFlightTest, RunInOrderAndTheFirstEndsFirst) {
  ASSERT_EQ(backend_->max_in_flight(), 2u);
  float* const first = Host(-1);
  float* const second = Host(-1);
  bool held = true;
  const auto one = Count(first);
  backend_->BeginEncode(EncodeMode::kRun);
  HoldUntil([&] { return !held; });
  const auto two = CountInSame(second);
  ASSERT_TRUE(one.ok() && two.ok()) << one.status() << two.status();

  EXPECT_EQ(backend_->Wait(*two).code(), absl::StatusCode::kFailedPrecondition) << "not the oldest";
  EXPECT_TRUE(backend_->Done(*one));
  EXPECT_EQ(backend_->Wait(*one), absl::OkStatus()) << "the second one is held";
  EXPECT_EQ(first[0], 1);
  EXPECT_EQ(second[0], -1);
  EXPECT_FALSE(backend_->Done(*two));
  held = false;
  EXPECT_TRUE(backend_->Done(*two));
  EXPECT_EQ(backend_->Wait(*two), absl::OkStatus());
  EXPECT_EQ(second[kDim - 1], 2);
  EXPECT_EQ(backend_->Wait(*two).code(), absl::StatusCode::kFailedPrecondition) << "once";
}

TEST_F(InFlightTest, ManyStepsInTurn) {
  float* const out[] = {Host(-1), Host(-1)};
  absl::StatusOr<Ticket> before = Count(out[0]);
  for (int step = 2; step <= 20; ++step) {
    const absl::StatusOr<Ticket> next = Count(out[(step - 1) % 2]);
    ASSERT_TRUE(next.ok()) << next.status();
    ASSERT_TRUE(backend_->Wait(*before).ok());
    EXPECT_EQ(out[step % 2][0], step - 1);
    before = next;
  }
  EXPECT_TRUE(backend_->Wait(*before).ok());
}

TEST_F(InFlightTest, OneGraphIsReplayedByBoth) {
  float* const out = Host(-1);
  backend_->BeginEncode(EncodeMode::kCapture);
  backend_->Encode(AddRowsParams{x_, one_, nullptr, 1, kDim});
  const auto graph = backend_->graphs()->Finish();
  ASSERT_TRUE(graph.ok()) << graph.status();
  std::vector<Ticket> tickets;
  for (int step = 0; step < 2; ++step) {
    backend_->BeginEncode(EncodeMode::kRun);
    backend_->graphs()->Replay(**graph);
    const auto ticket = CountInSame(out);
    ASSERT_TRUE(ticket.ok()) << ticket.status();
    tickets.push_back(*ticket);
  }
  EXPECT_TRUE(backend_->Wait(tickets[0]).ok());
  EXPECT_EQ(out[0], 2);
  EXPECT_TRUE(backend_->Wait(tickets[1]).ok());
  EXPECT_EQ(out[0], 4);
}

TEST_F(InFlightTest, EncodingBehindOneInFlightDoesNotBlock) {
  float* const out = Host(-1);
  const auto one = Count(out);
  const StepGuard guard;
  const auto two = Count(out);
  EXPECT_TRUE(guard.Check().ok()) << guard.Check();
  ASSERT_TRUE(one.ok() && two.ok());
  EXPECT_TRUE(backend_->Done(*one));
  EXPECT_TRUE(guard.Check().ok()) << "a look does not block either";
  EXPECT_TRUE(backend_->Wait(*one).ok());
  EXPECT_TRUE(backend_->Wait(*two).ok());
}

TEST_F(InFlightTest, TheSecondOneEndsWithTheErrorOfTheFirstAndTheThirdIsClean) {
  float* const first = Host(-1);
  float* const second = Host(-1);
  bool held = true;
  backend_->BeginEncode(EncodeMode::kRun);
  HoldUntil([&] { return !std::exchange(held, false); });  // once
  const auto one = CountInSame(first, Deadline::At({}));
  const auto two = Count(second);
  ASSERT_TRUE(one.ok() && two.ok());
  EXPECT_TRUE(backend_->Done(*one)) << "Wait gives up";
  const absl::Status error = backend_->Wait(*one);
  EXPECT_EQ(error.code(), absl::StatusCode::kDeadlineExceeded);
  EXPECT_EQ(first[0], 1) << "drained";
  EXPECT_EQ(backend_->Wait(*two), error);
  EXPECT_EQ(second[0], 2) << "drained too: its buffers are free now";
  const auto three = Count(first);
  ASSERT_TRUE(three.ok());
  EXPECT_EQ(backend_->Wait(*three), absl::OkStatus());
}

TEST_F(InFlightTest, EachHasItsDeadline) {
  float* const out = Host(-1);
  int asked = 0;
  const auto one = Count(out);
  backend_->BeginEncode(EncodeMode::kRun);
  HoldUntil([&] { return ++asked > 3; });
  const auto two = CountInSame(out, Deadline::At({}));
  ASSERT_TRUE(one.ok() && two.ok());
  EXPECT_EQ(backend_->Wait(*one), absl::OkStatus());
  EXPECT_EQ(asked, 0);
  EXPECT_EQ(backend_->Wait(*two).code(), absl::StatusCode::kDeadlineExceeded);
}

TEST_F(InFlightTest, TheTimeOfTheSecondBeginsWhenTheFirstWasWaitedFor) {
  const auto time = std::chrono::seconds(1);
  float* const out = Host(-1);
  SimulatedClock clock;
  const auto one = Count(out);
  backend_->BeginEncode(EncodeMode::kRun);
  int asked = 0;
  HoldUntil([&] { return ++asked > 3; });
  const auto two = CountInSame(out, Deadline::After(time, clock));
  ASSERT_TRUE(one.ok() && two.ok());
  clock.Advance(2 * time);
  EXPECT_EQ(backend_->Wait(*one), absl::OkStatus());
  EXPECT_EQ(backend_->Wait(*two), absl::OkStatus());
  EXPECT_EQ(asked, 4);
}

TEST_F(InFlightTest, AnErrorOfTheDeviceEndsBothAndStays) {
  float* const out = Host(-1);
  backend_->BeginEncode(EncodeMode::kRun);
  Enqueue([] { return cudaErrorInvalidValue; });
  const auto one = CountInSame(out);
  const auto two = Count(out);
  ASSERT_TRUE(one.ok() && two.ok());
  const absl::Status error = backend_->Wait(*one);
  EXPECT_EQ(error.code(), absl::StatusCode::kInternal);
  EXPECT_EQ(backend_->Broken(), error);
  EXPECT_EQ(backend_->Wait(*two), error);
  EXPECT_EQ(Count(out).status(), error);
}

TEST_F(InFlightTest, AnErrorOfEncodingTheSecondLeavesTheFirst) {
  float* const out = Host(-1);
  std::vector<uint32_t> starts(66, 0);
  const auto one = Count(out);
  ASSERT_TRUE(one.ok());
  backend_->BeginEncode(EncodeMode::kRun);
  backend_->Encode(UnshardLogitsParams{x_, starts.data(), 65, 1, 0, one_});
  EXPECT_EQ(backend_->Submit(Soon()).status(), absl::InternalError("logits of more than 64 ranks"));
  EXPECT_EQ(backend_->Wait(*one), absl::OkStatus());
  EXPECT_EQ(out[0], 1);
}

// A communicator as it is after an abort: its work ends once it is cancelled.
class Watch : public StreamWatch {
 public:
  absl::Status Check() override { return state; }
  void Cancel(const absl::Status& reason) override { cancelled = reason; }

  absl::Status state, cancelled;
};

class WatchedTest : public InFlightTest {
 protected:
  void SetUp() override {
    InFlightTest::SetUp();
    backend_->SetWatch(&watch_);
  }
  void TearDown() override { backend_->SetWatch(nullptr); }

  // Encodes a collective with a peer that never comes, and submits.
  absl::StatusOr<Ticket> Collective(float* out, Deadline deadline = Soon()) {
    backend_->BeginEncode(EncodeMode::kRun);
    HoldUntil([this] { return !watch_.cancelled.ok(); });
    return CountInSame(out, deadline);
  }

  const absl::Status lost_ = absl::UnavailableError("rank 1 is gone");
  Watch watch_;
};

TEST_F(WatchedTest, APeerThatIsLostEndsBoth) {
  float* const out = Host(-1);
  const auto one = Collective(out);
  const auto two = Collective(out);
  ASSERT_TRUE(one.ok() && two.ok());
  EXPECT_FALSE(backend_->Done(*one));
  watch_.state = lost_;
  EXPECT_TRUE(backend_->Done(*one));
  EXPECT_EQ(backend_->Wait(*one), lost_);
  EXPECT_EQ(watch_.cancelled, lost_);
  watch_.state = absl::OkStatus();
  EXPECT_EQ(backend_->Wait(*two), lost_) << "cancelled, though it has reached its end";
}

// The communicator breaks in Done, which ends its work: the stream reaches the mark.
TEST_F(WatchedTest, WhatWasCancelledInAPollIsNoResult) {
  const auto one = Collective(Host(-1));
  ASSERT_TRUE(one.ok());
  EXPECT_FALSE(backend_->Done(*one));
  watch_.state = lost_;
  EXPECT_TRUE(backend_->Done(*one));
  watch_.cancelled = lost_;
  EXPECT_EQ(backend_->Wait(*one), lost_);
}

// It breaks while the second one is encoded.
TEST_F(WatchedTest, AnErrorOfEnqueuingEndsTheOneInFlightToo) {
  const auto one = Collective(Host(-1));
  ASSERT_TRUE(one.ok());
  backend_->BeginEncode(EncodeMode::kRun);
  watch_.cancelled = lost_;
  backend_->NoteError(lost_);
  EXPECT_EQ(backend_->Submit(Soon()).status(), lost_);
  EXPECT_EQ(backend_->Wait(*one), lost_);
}

TEST_F(WatchedTest, AnErrorOfEnqueuingBehindOneOfAnOpEndsTheOneInFlightToo) {
  std::vector<uint32_t> starts(66, 0);
  const auto one = Collective(Host(-1));
  ASSERT_TRUE(one.ok());
  backend_->BeginEncode(EncodeMode::kRun);
  backend_->Encode(UnshardLogitsParams{x_, starts.data(), 65, 1, 0, one_});
  watch_.cancelled = lost_;
  backend_->NoteError(lost_);
  EXPECT_FALSE(backend_->Submit(Soon()).ok());
  EXPECT_EQ(backend_->Wait(*one), lost_);
}

TEST_F(InFlightTest, DestroyingTheBackendWaitsForWhatIsInFlight) {
  float* const first = Host(-1);
  float* const second = Host(-1);
  int asked = 0;
  backend_->BeginEncode(EncodeMode::kRun);
  HoldUntil([&] { return ++asked > 3; });
  ASSERT_TRUE(CountInSame(first).ok());
  ASSERT_TRUE(Count(second).ok());
  backend_ = nullptr;
  EXPECT_EQ(first[0], 1);
  EXPECT_EQ(second[0], 2);
}

using InFlightDeathTest = InFlightTest;

TEST_F(InFlightDeathTest, NoThirdOneAndNothingButSteps) {
  float* const out = Host(-1);
  ASSERT_TRUE(Count(out).ok());
  EXPECT_DEATH(backend_->BeginEncode(EncodeMode::kPlan), "BeginEncode before Wait");
  EXPECT_DEATH(backend_->BeginEncode(EncodeMode::kCapture), "BeginEncode before Wait");
  ASSERT_TRUE(Count(out).ok());
  EXPECT_DEATH(backend_->BeginEncode(EncodeMode::kRun), "BeginEncode before Wait");
}

}  // namespace
}  // namespace tandem::kernels::cuda
