// The phases of a backend: order, errors, deadlines, plan passes and the guard.
#include <atomic>

#include "common/base/step_guard.h"
#include "tests/kernels/backends.h"

namespace tandem::kernels {
namespace {

class StreamTest : public testing::TestWithParam<BackendCase> {};
TANDEM_INSTANTIATE_BACKENDS(StreamTest);

TEST_P(StreamTest, RefusesActivationsThatOpsCannotComputeWith) {
  Rig rig(GetParam());
  Backend& b = rig.backend();
  EXPECT_TRUE(b.UseActivations(tensor::Type::kF32).ok());
  const absl::Status refused = b.UseActivations(tensor::Type::kBF16);
  EXPECT_EQ(refused.code(), absl::StatusCode::kUnimplemented);
  EXPECT_EQ(std::string(refused.message()),
            "backend " + std::string(b.name()) + " computes with F32 activations, not with BF16");
}

TEST_P(StreamTest, NothingRunsWhileEncoding) {
  Rig rig(GetParam());
  float* const device = rig.Put(std::vector<float>(8, 1.0f));
  std::vector<float> host(8, 2.0f), back(8);
  std::atomic<int> ran{0};
  Backend& b = rig.backend();
  b.BeginEncode(EncodeMode::kRun);
  b.Upload(device, host.data(), 32);
  b.host_stream()->Enqueue([&](Deadline) {
    ++ran;
    return absl::OkStatus();
  });
  b.Download(back.data(), device, 32);
  EXPECT_EQ(ran, 0);
  EXPECT_EQ(back[0], 0);
  host.assign(8, 3.0f);  // read when the stream gets there
  ASSERT_TRUE(b.SubmitAndWait(Soon()).ok());
  EXPECT_EQ(ran, 1);
  EXPECT_EQ(back, host);
}

TEST_P(StreamTest, RunsInOrderAlsoAcrossManyOpsAndSteps) {
  Rig rig(GetParam());
  constexpr uint32_t kDim = 64, kRows = 40, kOps = 100;
  Backend& b = rig.backend();
  float* const x = rig.Put(std::vector<float>(kRows * kDim, 0.0f));
  float* const one = rig.Put(std::vector<float>(kRows * kDim, 1.0f));
  float* const weight = rig.Put(std::vector<float>(kDim, 1.0f));
  float* const out = rig.Poisoned(kRows * kDim);
  for (int step = 1; step <= 20; ++step) {
    uint32_t seen_in_order = 0;
    b.BeginEncode(EncodeMode::kRun);
    for (uint32_t i = 0; i < kOps; ++i) {
      b.Encode(RmsNormParams{x, one, weight, 1e-6f, kRows, kDim, out});  // x += 1
      b.host_stream()->Enqueue([&, i, step](Deadline) {
        const auto expected = static_cast<float>(static_cast<uint32_t>(step - 1) * kOps + i + 1);
        bool all = true;
        for (uint32_t j = 0; j < kRows * kDim; ++j) all &= x[j] == expected;
        seen_in_order += all ? 1 : 0;
        return absl::OkStatus();
      });
    }
    ASSERT_TRUE(b.SubmitAndWait(Soon()).ok());
    ASSERT_EQ(seen_in_order, kOps) << "step " << step;
  }
}

TEST_P(StreamTest, TheFirstErrorStopsTheRestAndTheNextStepIsClean) {
  Rig rig(GetParam());
  Backend& b = rig.backend();
  std::vector<float> back(4, -1.0f);
  float* const device = rig.Put(std::vector<float>(4, 7.0f));
  bool later = false;
  b.BeginEncode(EncodeMode::kRun);
  b.host_stream()->Enqueue([](Deadline) { return absl::UnavailableError("rank 1 is gone"); });
  b.host_stream()->Enqueue([&](Deadline) {
    later = true;
    return absl::InternalError("never reached");
  });
  b.Download(back.data(), device, 16);
  EXPECT_EQ(b.SubmitAndWait(Soon()), absl::UnavailableError("rank 1 is gone"));
  EXPECT_FALSE(later);
  EXPECT_EQ(back[0], -1.0f);
  EXPECT_EQ(rig.Get(device, 4), std::vector<float>(4, 7.0f));
}

TEST_P(StreamTest, WorkGetsTheDeadlineAndAPassedOneStopsTheList) {
  Rig rig(GetParam());
  Backend& b = rig.backend();
  bool same = false, later = false;
  // With more time while the deadline passes before the work begins.
  for (auto time = std::chrono::milliseconds(5); !same && time < std::chrono::minutes(1);
       time *= 2) {
    const Deadline deadline = Deadline::After(time);
    b.BeginEncode(EncodeMode::kRun);
    b.host_stream()->Enqueue([&](Deadline given) {
      same = given.when() == deadline.when();
      while (!given.Passed()) {
      }
      return absl::OkStatus();
    });
    b.host_stream()->Enqueue([&](Deadline) {
      later = true;
      return absl::OkStatus();
    });
    EXPECT_EQ(b.SubmitAndWait(deadline).code(), absl::StatusCode::kDeadlineExceeded);
  }
  EXPECT_TRUE(same);
  EXPECT_FALSE(later);

  b.BeginEncode(EncodeMode::kRun);
  b.host_stream()->Enqueue([](Deadline) { return absl::OkStatus(); });
  EXPECT_EQ(b.SubmitAndWait(Deadline::At({})).code(), absl::StatusCode::kDeadlineExceeded);
}

TEST_P(StreamTest, APlanPassRunsNothingAndReservesWhatTheStepNeeds) {
  Rig rig(GetParam());
  Backend& b = rig.backend();
  constexpr uint32_t kVocab = 5000;
  float* const logits = rig.Put(std::vector<float>(kVocab, 0.0f));
  SamplingRow row;
  row.seed = 3;
  SamplingRow* const rows = rig.Put(std::vector<SamplingRow>{row});
  int32_t* const out = rig.Put(std::vector<int32_t>{-7});
  const auto encode = [&](uint32_t vocab) {
    b.Encode(SampleParams{logits, vocab, rows, 1, nullptr, nullptr, out});
  };
  bool ran = false;

  b.BeginEncode(EncodeMode::kRun);
  encode(kVocab);
  EXPECT_EQ(b.Submit(Soon()).status().code(), absl::StatusCode::kFailedPrecondition)
      << "no plan pass yet";

  b.BeginEncode(EncodeMode::kPlan);
  encode(kVocab);
  b.host_stream()->Enqueue([&](Deadline) {
    ran = true;
    return absl::OkStatus();
  });
  const auto bytes = b.FinishPlan();
  ASSERT_TRUE(bytes.ok());
  EXPECT_GE(*bytes, kVocab * sizeof(float));
  EXPECT_FALSE(ran);
  EXPECT_EQ(rig.Get(out, 1), std::vector<int32_t>{-7});

  for (const uint32_t vocab : {kVocab, 10u}) {  // the plan's size and below
    b.BeginEncode(EncodeMode::kRun);
    encode(vocab);
    ASSERT_TRUE(b.SubmitAndWait(Soon()).ok());
  }
  EXPECT_GE(rig.Get(out, 1)[0], 0);
}

TEST_P(StreamTest, BlockingCallsAreNoted) {
  Rig rig(GetParam());
  Backend& b = rig.backend();
  {
    const StepGuard guard;
    b.BeginEncode(EncodeMode::kRun);
    b.host_stream()->Enqueue([](Deadline) { return absl::OkStatus(); });
    const auto ticket = b.Submit(Soon());
    ASSERT_TRUE(ticket.ok());
    EXPECT_TRUE(guard.Check().ok()) << guard.Check();
    ASSERT_TRUE(b.Wait(*ticket).ok());
    EXPECT_EQ(guard.Check().code(), absl::StatusCode::kFailedPrecondition) << "Wait";
  }
  {
    const StepGuard guard;
    ASSERT_TRUE(b.Allocate(16).ok());
    EXPECT_EQ(guard.Check().code(), absl::StatusCode::kFailedPrecondition) << "Allocate";
  }
}

TEST_P(StreamTest, WaitWithoutSubmitIsAnError) {
  Rig rig(GetParam());
  EXPECT_EQ(rig.backend().Wait(Ticket{}).code(), absl::StatusCode::kFailedPrecondition);
}

TEST_P(StreamTest, TakesOneSubmissionAtATime) {
  Rig rig(GetParam());
  Backend& b = rig.backend();
  EXPECT_EQ(b.max_in_flight(), 1u);
  b.BeginEncode(EncodeMode::kRun);
  const auto ticket = b.Submit(Soon());
  ASSERT_TRUE(ticket.ok()) << ticket.status();
  EXPECT_DEATH(b.BeginEncode(EncodeMode::kRun), "BeginEncode before Wait");
  EXPECT_EQ(b.Wait({ticket->number + 1}).code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(b.Wait(*ticket), absl::OkStatus());
  EXPECT_EQ(b.Wait(*ticket).code(), absl::StatusCode::kFailedPrecondition);
}

TEST_P(StreamTest, AnEmptyStepIsFine) {
  Rig rig(GetParam());
  rig.Run([](Backend&) {});
}

TEST_P(StreamTest, MemoryIsZeroedAlignedAndBounded) {
  Rig rig(GetParam());
  for (const size_t bytes : {size_t{0}, size_t{1}, size_t{5000}, size_t{5} << 20}) {
    auto buffer = rig.backend().Allocate(bytes);
    ASSERT_TRUE(buffer.ok());
    EXPECT_EQ(buffer->bytes(), bytes);
    EXPECT_EQ(reinterpret_cast<uintptr_t>(buffer->data()) % 64, 0u);
    std::vector<std::byte> copy(bytes, std::byte{1});
    rig.Execute([&](Backend& b) { b.Download(copy.data(), buffer->data(), bytes); });
    EXPECT_EQ(copy, std::vector<std::byte>(bytes));
  }
  for (const size_t bytes : {size_t{1} << 60, SIZE_MAX}) {
    EXPECT_EQ(rig.backend().Allocate(bytes).status().code(), absl::StatusCode::kResourceExhausted);
  }
}

}  // namespace
}  // namespace tandem::kernels
