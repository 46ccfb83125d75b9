// The phases of the CUDA backend, under emulation: what tests/kernels/stream_test.cc asks of
// backends with a host stream, and what only a device has.
#include <gmock/gmock.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "common/base/step_guard.h"
#include "kernels/cuda/cuda_backend.h"
#include "tools/cuda_emulation/runtime.h"

namespace tandem::kernels::cuda {
namespace {

using testing::HasSubstr;

constexpr uint32_t kDim = 8;

class CudaStreamTest : public testing::Test {
 protected:
  void SetUp() override { ASSERT_TRUE(backend_.Open().ok()); }

  static Deadline Soon() { return Deadline::After(std::chrono::minutes(1)); }

  float* Device(size_t count) {
    buffers_.push_back(backend_.Allocate(count * sizeof(float)).value());
    return reinterpret_cast<float*>(buffers_.back().data());
  }
  float* Pinned(const std::vector<float>& values) {
    buffers_.push_back(backend_.AllocateHost(values.size() * sizeof(float)).value());
    std::memcpy(buffers_.back().data(), values.data(), values.size() * sizeof(float));
    return reinterpret_cast<float*>(buffers_.back().data());
  }

  absl::Status Run() { return backend_.SubmitAndWait(Soon()); }

  void Upload(float* device, float value, size_t count = kDim) {
    const std::vector<float> values(count, value);
    backend_.BeginEncode(EncodeMode::kRun);
    backend_.Upload(device, values.data(), count * sizeof(float));
    ASSERT_TRUE(Run().ok());
  }
  std::vector<float> Download(const float* device, size_t count = kDim) {
    std::vector<float> values(count);
    backend_.BeginEncode(EncodeMode::kRun);
    backend_.Download(values.data(), device, count * sizeof(float));
    EXPECT_TRUE(Run().ok());
    return values;
  }

  // Encodes x += y.
  void Add(float* x, float* y) { backend_.Encode(AddRowsParams{x, y, nullptr, 1, kDim}); }

  // Work that is not ready until `done` is set.
  void HoldUntil(std::function<bool()> done) {
    ASSERT_EQ(emulation::Enqueue(
                  static_cast<cudaStream_t>(backend_.handle()),
                  [done = std::move(done)] { return done() ? cudaSuccess : cudaErrorNotReady; }),
              cudaSuccess);
  }

  CudaBackend backend_{"cuda-emulated"};
  std::vector<Buffer> buffers_;
};

TEST_F(CudaStreamTest, CopiesAndOpsRunInOrder) {
  float* const x = Device(kDim);
  float* const y = Device(kDim);
  float* const ones = Pinned(std::vector<float>(kDim, 1));
  float* const twos = Pinned(std::vector<float>(kDim, 2));
  float* const before = Pinned(std::vector<float>(kDim, -1));
  float* const after = Pinned(std::vector<float>(kDim, -1));
  backend_.BeginEncode(EncodeMode::kRun);
  backend_.Upload(x, ones, kDim * sizeof(float));
  backend_.Upload(y, twos, kDim * sizeof(float));
  backend_.Download(before, x, kDim * sizeof(float));
  Add(x, y);
  backend_.Upload(y, ones, kDim * sizeof(float));
  Add(x, y);
  backend_.Download(after, x, kDim * sizeof(float));
  ASSERT_TRUE(Run().ok());
  for (uint32_t i = 0; i < kDim; ++i) {
    EXPECT_EQ(before[i], 1);
    EXPECT_EQ(after[i], 4);
  }
}

TEST_F(CudaStreamTest, MemoryIsZeroedAndWhatDoesNotFitIsRefused) {
  EXPECT_EQ(Download(Device(1000), 1000), std::vector<float>(1000, 0.0f));
  const auto pinned = backend_.AllocateHost(1000);
  ASSERT_TRUE(pinned.ok());
  EXPECT_TRUE(std::all_of(pinned->data(), pinned->data() + 1000,
                          [](std::byte byte) { return byte == std::byte{}; }));
  const auto huge = backend_.Allocate(size_t{1} << 50);
  EXPECT_EQ(huge.status().code(), absl::StatusCode::kResourceExhausted);
}

// Host memory where device memory belongs, and the other way round.
TEST_F(CudaStreamTest, ACopyFromTheWrongSideIsAnError) {
  float* const device = Device(kDim);
  float* const host = Pinned(std::vector<float>(kDim, 1));
  backend_.BeginEncode(EncodeMode::kRun);
  backend_.Upload(host, device, kDim * sizeof(float));
  EXPECT_THAT(std::string(backend_.Submit(Soon()).status().message()),
              HasSubstr("copy: cudaErrorInvalid"));
}

TEST_F(CudaStreamTest, TheFirstErrorOfEncodingComesBackFromSubmit) {
  float* const x = Device(kDim);
  float* const y = Device(kDim);
  Upload(y, 1);
  std::vector<uint32_t> starts(66, 0);
  backend_.BeginEncode(EncodeMode::kRun);
  Add(x, y);
  backend_.Encode(UnshardLogitsParams{x, starts.data(), 65, 1, 0, y});
  backend_.NoteError(absl::InternalError("a later error"));
  Add(x, y);  // not launched any more
  EXPECT_EQ(backend_.Submit(Soon()).status(), absl::InternalError("logits of more than 64 ranks"));
  EXPECT_EQ(backend_.Wait(Ticket{1}).code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(Download(x), std::vector<float>(kDim, 1)) << "what came before ran, the rest did not";
}

TEST_F(CudaStreamTest, AnErrorOfTheDeviceComesBackFromWaitAndStays) {
  backend_.BeginEncode(EncodeMode::kRun);
  ASSERT_EQ(emulation::Enqueue(static_cast<cudaStream_t>(backend_.handle()),
                               [] { return cudaErrorInvalidValue; }),
            cudaSuccess);
  const absl::Status error = Run();
  EXPECT_EQ(error.code(), absl::StatusCode::kInternal);
  EXPECT_THAT(std::string(error.message()), HasSubstr("cudaErrorInvalidValue"));
  backend_.BeginEncode(EncodeMode::kRun);
  EXPECT_EQ(backend_.Submit(Soon()).status(), error);
}

TEST_F(CudaStreamTest, ScratchBeyondThePlanIsRefused) {
  constexpr uint32_t kVocab = 100;
  float* const logits = Device(kVocab);
  auto* const rows = reinterpret_cast<SamplingRow*>(Device(sizeof(SamplingRow)));
  *rows = {.temperature = 0};
  auto* const out = reinterpret_cast<int32_t*>(Device(2));
  const auto encode = [&](uint32_t count) {
    backend_.Encode(SampleParams{logits, kVocab, rows, count, nullptr, nullptr, out});
  };
  backend_.BeginEncode(EncodeMode::kPlan);
  encode(1);
  const auto planned = backend_.FinishPlan();
  ASSERT_TRUE(planned.ok()) << planned.status();
  EXPECT_GE(*planned, kVocab * sizeof(float));
  backend_.BeginEncode(EncodeMode::kRun);
  encode(2);
  EXPECT_THAT(std::string(backend_.Submit(Soon()).status().message()),
              HasSubstr("the plan pass reserved " + std::to_string(*planned)));
  backend_.BeginEncode(EncodeMode::kRun);
  encode(1);
  EXPECT_TRUE(Run().ok());
}

TEST_F(CudaStreamTest, AKernelThatThePlanPassHasSeenIsLoadedBeforeItsFirstLaunch) {
  float* const x = Device(kDim);
  const int late = emulation::LateKernelLoads();
  backend_.BeginEncode(EncodeMode::kPlan);
  backend_.Encode(SoftCapParams{x, kDim, 1.0f});
  ASSERT_TRUE(backend_.FinishPlan().ok());
  backend_.BeginEncode(EncodeMode::kRun);
  backend_.Encode(SoftCapParams{x, kDim, 1.0f});
  EXPECT_TRUE(Run().ok());
  EXPECT_EQ(emulation::LateKernelLoads(), late);
}

// At load, not at the first step.
TEST_F(CudaStreamTest, MoreSharedMemoryThanTheGpuHasIsRefusedByThePlan) {
  float* const x = Device(kDim);
  RouteParams params{};
  params.logits = x;
  params.tokens = 1;
  params.experts = 20000;
  params.top_k = params.groups = params.groups_kept = params.group_top = 1;
  params.ids = reinterpret_cast<int32_t*>(x);
  params.weights = x;
  backend_.BeginEncode(EncodeMode::kPlan);
  backend_.Encode(params);
  EXPECT_THAT(
      std::string(backend_.FinishPlan().status().message()),
      HasSubstr("route: needs 320256 bytes of shared memory per block, this GPU has 232448"));
}

TEST_F(CudaStreamTest, MoreBlocksThanAGridHasAreRefusedByThePlan) {
  float* const x = Device(kDim);
  constexpr uint32_t kRows = 65536 * 16, kCols = 256;
  const Weight weight = {tensor::Type::kQ8_0, x, kRows, kCols, 8 * 34, 0, kCols};
  MatMulParams params = {x, 2, kCols, 1, {}};
  params.projections[0] = {weight, nullptr, x, kRows};
  backend_.BeginEncode(EncodeMode::kPlan);
  backend_.Encode(params);
  EXPECT_THAT(std::string(backend_.FinishPlan().status().message()),
              HasSubstr("block_product: needs a grid of 65536 by 1 rows of blocks, a GPU has at "
                        "most 65535 of either"));
}

TEST_F(CudaStreamTest, APlanPassRunsNothing) {
  float* const x = Device(kDim);
  float* const y = Device(kDim);
  Upload(y, 1);
  float* const host = Pinned(std::vector<float>(kDim, 5));
  backend_.BeginEncode(EncodeMode::kPlan);
  backend_.Upload(y, host, kDim * sizeof(float));
  Add(x, y);
  ASSERT_TRUE(backend_.FinishPlan().ok());
  EXPECT_EQ(Download(x), std::vector<float>(kDim, 0));
  EXPECT_EQ(Download(y), std::vector<float>(kDim, 1));
}

TEST_F(CudaStreamTest, ACaptureRunsNothingAndAReplayRunsIt) {
  float* const x = Device(kDim);
  float* const y = Device(kDim);
  float* const in = Pinned(std::vector<float>(kDim, 1));
  float* const out = Pinned(std::vector<float>(kDim, -1));
  backend_.BeginEncode(EncodeMode::kCapture);
  backend_.Upload(y, in, kDim * sizeof(float));
  Add(x, y);
  backend_.Download(out, x, kDim * sizeof(float));
  const auto graph = backend_.graphs()->Finish();
  ASSERT_TRUE(graph.ok()) << graph.status();
  EXPECT_EQ(Download(x), std::vector<float>(kDim, 0));
  EXPECT_EQ(out[0], -1);

  backend_.BeginEncode(EncodeMode::kRun);
  backend_.graphs()->Replay(**graph);
  ASSERT_TRUE(Run().ok());
  EXPECT_EQ(std::vector<float>(out, out + kDim), std::vector<float>(kDim, 1));

  std::fill_n(in, kDim, 10.0f);  // the same pointers, other values
  backend_.BeginEncode(EncodeMode::kRun);
  backend_.graphs()->Replay(**graph);
  backend_.graphs()->Replay(**graph);
  ASSERT_TRUE(Run().ok());
  EXPECT_EQ(std::vector<float>(out, out + kDim), std::vector<float>(kDim, 21));
}

TEST_F(CudaStreamTest, AGraphIsUploadedBeforeItsFirstReplay) {
  float* const x = Device(kDim);
  backend_.BeginEncode(EncodeMode::kCapture);
  Add(x, x);
  const auto graph = backend_.graphs()->Finish();
  ASSERT_TRUE(graph.ok()) << graph.status();
  const int late = emulation::LateGraphUploads();
  backend_.BeginEncode(EncodeMode::kRun);
  backend_.graphs()->Replay(**graph);
  ASSERT_TRUE(Run().ok());
  EXPECT_EQ(emulation::LateGraphUploads(), late);
}

TEST_F(CudaStreamTest, APlanCountsNodesAsACaptureRecordsThem) {
  float* const x = Device(kDim);
  backend_.BeginEncode(EncodeMode::kPlan);
  EXPECT_EQ(backend_.graphs()->PlannedNodes(), 0u);
  Add(x, x);
  Add(x, x);
  EXPECT_EQ(backend_.graphs()->PlannedNodes(), 2u);
  backend_.BeginEncode(EncodeMode::kPlan);
  EXPECT_EQ(backend_.graphs()->PlannedNodes(), 0u);
}

// A graph holds the address of the scratch that there was when it was captured.
TEST_F(CudaStreamTest, ScratchThatGraphsPointIntoStays) {
  float* const x = Device(kDim);
  const auto plan = [&](uint32_t count) {
    backend_.BeginEncode(EncodeMode::kPlan);
    backend_.Encode(SampleParams{x, kDim, reinterpret_cast<SamplingRow*>(x), count, nullptr,
                                 nullptr, reinterpret_cast<int32_t*>(x)});
    return backend_.FinishPlan();
  };
  const auto few = plan(1);
  ASSERT_TRUE(few.ok());
  backend_.BeginEncode(EncodeMode::kCapture);
  Add(x, x);
  auto graph = backend_.graphs()->Finish();
  ASSERT_TRUE(graph.ok()) << graph.status();
  EXPECT_TRUE(plan(1).ok()) << "nothing has to grow";
  const auto refused = plan(200);
  EXPECT_EQ(refused.status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(refused.status().message()),
              HasSubstr("bytes of scratch, but 1 graphs point into the " + std::to_string(*few)));
  graph->reset();
  EXPECT_TRUE(plan(200).ok());
}

TEST_F(CudaStreamTest, PoisonedMemoryIsNanInEveryStep) {
  float* const activations = Device(kDim);
  float* const kept = Device(kDim);
  Upload(activations, 1);
  EXPECT_EQ(Download(activations), std::vector<float>(kDim, 1));
  backend_.PoisonBetweenSteps({reinterpret_cast<std::byte*>(activations), kDim * sizeof(float)});
  for (int step = 0; step < 2; ++step) {
    Upload(activations, 1);
    for (const float value : Download(activations)) EXPECT_TRUE(value != value);
  }
  // A replay that reads what the step before left there.
  backend_.BeginEncode(EncodeMode::kCapture);
  Add(kept, activations);
  const auto graph = backend_.graphs()->Finish();
  ASSERT_TRUE(graph.ok()) << graph.status();
  Upload(activations, 1);
  backend_.BeginEncode(EncodeMode::kRun);
  backend_.graphs()->Replay(**graph);
  ASSERT_TRUE(Run().ok());
  for (const float value : Download(kept)) EXPECT_TRUE(value != value);
}

// The same sample, whatever the step before left in scratch.
TEST_F(CudaStreamTest, ScratchIsPoisonedToo) {
  constexpr uint32_t kVocab = 8;
  float* const logits = Device(kVocab);
  auto* const rows = reinterpret_cast<SamplingRow*>(Device(sizeof(SamplingRow)));
  *rows = {.temperature = 0};
  auto* const out = reinterpret_cast<int32_t*>(Device(1));
  const auto encode = [&] {
    backend_.Encode(SampleParams{logits, kVocab, rows, 1, nullptr, nullptr, out});
  };
  backend_.BeginEncode(EncodeMode::kPlan);
  encode();
  ASSERT_TRUE(backend_.FinishPlan().ok());
  backend_.PoisonBetweenSteps({});
  size_t filled = 0;
  emulation::ObserveFills([&](int value, size_t bytes) { filled += value == 0xff ? bytes : 0; });
  backend_.BeginEncode(EncodeMode::kRun);
  encode();
  EXPECT_TRUE(Run().ok());
  emulation::ObserveFills(nullptr);
  EXPECT_GE(filled, kVocab * sizeof(float));
}

TEST_F(CudaStreamTest, AnErrorInACaptureComesBackFromItsEnd) {
  float* const x = Device(kDim);
  backend_.BeginEncode(EncodeMode::kCapture);
  Add(x, x);
  backend_.NoteError(absl::InternalError("no such thing"));
  EXPECT_EQ(backend_.graphs()->Finish().status(), absl::InternalError("no such thing"));
  Upload(x, 3);  // the stream still works
  EXPECT_EQ(Download(x), std::vector<float>(kDim, 3));
}

TEST_F(CudaStreamTest, TheGuardNamesTheCallThatBlocks) {
  float* const x = Device(kDim);
  {
    const StepGuard guard;
    backend_.BeginEncode(EncodeMode::kRun);
    Add(x, x);
    const auto ticket = backend_.Submit(Soon());
    ASSERT_TRUE(ticket.ok()) << ticket.status();
    EXPECT_TRUE(guard.Check().ok()) << guard.Check();
    ASSERT_TRUE(backend_.Wait(*ticket).ok());
    EXPECT_THAT(std::string(guard.Check().message()), HasSubstr("Backend::Wait"));
  }
  const auto named = [&](auto call) {
    const StepGuard guard;
    call();
    EXPECT_EQ(guard.Check().code(), absl::StatusCode::kFailedPrecondition);
    return std::string(guard.Check().message());
  };
  EXPECT_THAT(named([&] { ASSERT_TRUE(backend_.Allocate(16).ok()); }),
              HasSubstr("Backend::Allocate"));
  EXPECT_THAT(named([&] { ASSERT_TRUE(backend_.AllocateHost(16).ok()); }),
              HasSubstr("Backend::AllocateHost"));
}

TEST_F(CudaStreamTest, AStepThatIsNotDoneInTimeEndsWithTheDeadlineAndTheNextIsClean) {
  float* const x = Device(kDim);
  float* const y = Device(kDim);
  Upload(y, 1);
  int asked = 0;
  backend_.BeginEncode(EncodeMode::kRun);
  HoldUntil([&] { return ++asked > 3; });
  Add(x, y);
  EXPECT_EQ(backend_.SubmitAndWait(Deadline::At({})).code(), absl::StatusCode::kDeadlineExceeded);
  EXPECT_EQ(asked, 4) << "Wait lets the stream drain";
  EXPECT_EQ(Download(x), std::vector<float>(kDim, 1));
}

class Watch : public StreamWatch {
 public:
  absl::Status Check() override {
    return ++checks_ < 3 ? absl::OkStatus() : absl::UnavailableError("rank 1 is gone");
  }
  void Cancel(const absl::Status& reason) override { cancelled_ = reason; }

  const absl::Status& cancelled() const { return cancelled_; }

 private:
  int checks_ = 0;
  absl::Status cancelled_;
};

TEST_F(CudaStreamTest, AFailingWatchEndsTheWaitAndIsCancelled) {
  float* const x = Device(kDim);
  Watch watch;
  backend_.SetWatch(&watch);
  backend_.BeginEncode(EncodeMode::kRun);
  HoldUntil([&] { return !watch.cancelled().ok(); });
  EXPECT_EQ(Run(), absl::UnavailableError("rank 1 is gone"));
  EXPECT_EQ(watch.cancelled(), absl::UnavailableError("rank 1 is gone"));
  backend_.SetWatch(nullptr);
  EXPECT_EQ(Download(x), std::vector<float>(kDim, 0));
}

TEST_F(CudaStreamTest, ADeadlineCancelsTheWatchedWorkToo) {
  class Patient : public Watch {
    absl::Status Check() override { return absl::OkStatus(); }
  } watch;
  backend_.SetWatch(&watch);
  backend_.BeginEncode(EncodeMode::kRun);
  HoldUntil([&] { return !watch.cancelled().ok(); });
  EXPECT_EQ(backend_.SubmitAndWait(Deadline::At({})).code(), absl::StatusCode::kDeadlineExceeded);
  EXPECT_EQ(watch.cancelled().code(), absl::StatusCode::kDeadlineExceeded);
  backend_.SetWatch(nullptr);
}

}  // namespace
}  // namespace tandem::kernels::cuda
