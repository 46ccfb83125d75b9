// ModelRunner on a device: no touch of device memory by the host, one copy up and one down.
#include <gtest/gtest.h>

#include <fstream>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "common/base/status.h"
#include "tests/worker/runtime/fake_device.h"
#include "tests/worker/runtime/runner_rig.h"
#include "worker/runtime/decode_graphs.h"
#include "worker/runtime/planner.h"

namespace tandem::worker {
namespace {

class DeviceRunnerTest : public ::testing::Test {
 protected:
  void SetUp() override {
    RegisterFakeDevice({.graphs = false}, notes_);
    options_ = {
        .config = {
            .model = {.spec = {.max_model_len = 64}},
            .cache = {.block_size = 8, .num_kv_blocks = 16, .kv_cache_type = tensor::Type::kF32},
            .limits = {.max_num_seqs = 4, .max_num_batched_tokens = 32},
            .transport = {.max_result_bytes = {1 << 20}}}};
  }

  absl::StatusOr<RunnerPlan> PlanOf(const FakeDeviceOptions& device) {
    RegisterFakeDevice(device, notes_);
    TANDEM_ASSIGN_OR_RETURN(auto model, LoadLlama("cuda"));
    models_.push_back(std::move(model));
    return ModelRunner(*models_.back(), options_).Prepare();
  }

  // A started runner on `device`; the model stays in models_.
  std::unique_ptr<ModelRunner> StartOn(const std::string& device) {
    auto model = LoadLlama(device);
    EXPECT_TRUE(model.ok()) << model.status();
    models_.push_back(*std::move(model));
    auto runner = std::make_unique<ModelRunner>(*models_.back(), options_);
    EXPECT_TRUE(runner->Prepare().ok());
    EXPECT_TRUE(runner->Start(Epoch{1}, {16}, nullptr).ok());
    return runner;
  }

  const std::shared_ptr<FakeDeviceNotes> notes_ = std::make_shared<FakeDeviceNotes>();
  RunnerOptions options_;
  std::vector<std::unique_ptr<LoadedModel>> models_;
};

step::StepDescriptor WantsEverything() {
  step::StepDescriptor step = MakeStep(1, {{0, 0, 0, {1, 2, 3, 4}}, {1, 3, 0, {7, 8, 9}}});
  step.rows.insert(step.rows.begin(), {.token = 1,
                                       .wants = step::kWantLogits | step::kWantTopLogprobs,
                                       .top_n = 3,
                                       .logprobs_of = {}});
  step.rows.insert(step.rows.begin() + 1,
                   {.token = 2, .wants = step::kWantLogits, .top_n = 0, .logprobs_of = {}});
  step.rows[3].wants |= step::kWantLogits | step::kWantSampleLogprob | step::kWantLogprobsOf;
  step.rows[3].logprobs_of = {5, 300};
  return step;
}

TEST_F(DeviceRunnerTest, GivesWhatTheHostGives) {
  auto on_host = StartOn("cpu");
  auto on_device = StartOn("cuda");
  const auto expected = on_host->Run(WantsEverything(), Soon());
  const auto found = on_device->Run(WantsEverything(), Soon());
  ASSERT_TRUE(expected.ok() && found.ok()) << expected.status() << found.status();
  ASSERT_EQ(expected->rows.size(), 4u);
  EXPECT_EQ(expected->rows[3].logits.size(), 323u);
  EXPECT_EQ(expected->rows, found->rows);
}

TEST_F(DeviceRunnerTest, AStepIsOneCopyUpAndOneDown) {
  auto runner = StartOn("cuda");
  notes_->Clear();
  const step::StepDescriptor step = MakeStep(1, {{0, 0, 0, {1, 2, 3, 4}}, {1, 3, 0, {7, 8, 9}}});
  ASSERT_TRUE(runner->Run(step, Soon()).ok());
  ASSERT_EQ(notes_->uploads.size(), 1u);
  ASSERT_EQ(notes_->downloads.size(), 1u);
  EXPECT_TRUE(notes_->uploads[0].page_locked);
  EXPECT_TRUE(notes_->downloads[0].page_locked);
  EXPECT_EQ(notes_->allocated_bytes, 0u);
}

TEST_F(DeviceRunnerTest, LogitsAreACopyForRowsThatStandTogether) {
  auto runner = StartOn("cuda");
  notes_->Clear();
  ASSERT_TRUE(runner->Run(WantsEverything(), Soon()).ok());
  // Rows 0 and 1 together, row 3, then samples and log-probabilities.
  ASSERT_EQ(notes_->downloads.size(), 3u);
  EXPECT_EQ(notes_->downloads[0].bytes, 2 * 323 * sizeof(float));
  EXPECT_EQ(notes_->downloads[1].bytes, 323 * sizeof(float));
  for (const auto& copy : notes_->downloads) EXPECT_TRUE(copy.page_locked);
}

TEST_F(DeviceRunnerTest, AStepWithoutRequestsReturnsNothing) {
  auto runner = StartOn("cuda");
  notes_->Clear();
  step::StepDescriptor step = MakeStep(1, {{0, 0, 0, {1, 2, 3, 4}}});
  step.rows.clear();
  step.sampling.clear();
  step.kind = step::StepKind::kPrefill;
  const auto result = runner->Run(step, Soon());
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_TRUE(result->rows.empty());
  EXPECT_TRUE(notes_->downloads.empty());
}

// A sequence of three blocks, then a token more; what stands before comes from tables and pages.
std::vector<step::StepDescriptor> PromptAndToken() {
  const std::vector<TokenId> prompt = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17};
  std::vector<step::StepDescriptor> steps = {MakeStep(1, {{1, 5, 0, prompt}}),
                                             MakeStep(2, {{1, 5, 17, {18}, 3}})};
  for (auto& step : steps) step.rows[0].wants |= step::kWantLogits;
  return steps;
}

TEST_F(DeviceRunnerTest, ARefusedStepLeavesTheTablesOfTheDevice) {
  auto undisturbed = StartOn("cuda"), runner = StartOn("cuda");
  const std::vector<step::StepDescriptor> steps = PromptAndToken();
  ASSERT_TRUE(undisturbed->Run(steps[0], Soon()).ok());
  ASSERT_TRUE(runner->Run(steps[0], Soon()).ok());
  // Other blocks for the same slot, and at the end of the step what is refused.
  step::StepDescriptor refused = MakeStep(2, {{1, 9, 17, {18}}});
  refused.sampling[0].top_p = 7;
  EXPECT_EQ(runner->Run(refused, Soon()).status().code(), absl::StatusCode::kInvalidArgument);
  const auto expected = undisturbed->Run(steps[1], Soon());
  const auto found = runner->Run(steps[1], Soon());
  ASSERT_TRUE(expected.ok() && found.ok()) << expected.status() << found.status();
  EXPECT_EQ(found->rows, expected->rows);
}

TEST_F(DeviceRunnerTest, AfterAFailedStepOnlyTheNextEpochRuns) {
  for (const auto fault : {&FakeDeviceNotes::broken, &FakeDeviceNotes::broken_wait}) {
    auto runner = StartOn("cuda");
    std::vector<step::StepDescriptor> steps = PromptAndToken();
    const auto first = runner->Run(steps[0], Soon());
    ASSERT_TRUE(first.ok()) << first.status();
    (*notes_).*fault = absl::InternalError("broken");
    EXPECT_EQ(runner->Run(steps[1], Soon()).status().code(), absl::StatusCode::kInternal);
    (*notes_).*fault = absl::OkStatus();
    // Its table may be right, its pages may not: also the same step again is refused.
    for (const step::StepDescriptor& step : steps) {
      const absl::Status status = runner->Run(step, Soon()).status();
      EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
      EXPECT_NE(status.message().find("after step 2, which failed"), absl::string_view::npos)
          << status;
    }
    ASSERT_TRUE(runner->Start(Epoch{2}, {16}, nullptr).ok());
    steps[0].epoch = Epoch{2};
    const auto again = runner->Run(steps[0], Soon());
    ASSERT_TRUE(again.ok()) << again.status();
    EXPECT_EQ(again->rows, first->rows);
  }
}

TEST_F(DeviceRunnerTest, TheKvCacheTakesWhatTheBudgetLeaves) {
  options_.config.cache.num_kv_blocks = 0;
  options_.config.device.gpu_memory_utilization = 0.5;
  const auto plan = PlanOf({.memory = {.total_bytes = 64 << 20, .free_bytes = 60 << 20}});
  ASSERT_TRUE(plan.ok()) << plan.status();
  constexpr uint64_t kLimit = 32 << 20;
  EXPECT_LE(plan->total_bytes(), kLimit);
  EXPECT_GT(plan->total_bytes() + plan->kv.Bytes(1), kLimit);
  // What others hold can't be had.
  const auto less = PlanOf({.memory = {.total_bytes = 64 << 20, .free_bytes = 20 << 20}});
  ASSERT_TRUE(less.ok()) << less.status();
  EXPECT_LE(less->total_bytes(), uint64_t{20} << 20);
  EXPECT_EQ(less->fixed_bytes(), plan->fixed_bytes());
}

TEST_F(DeviceRunnerTest, WhatIsAskedForGoesBeforeTheBudget) {
  options_.config.cache.num_kv_blocks = 3;
  EXPECT_EQ(PlanOf({})->num_kv_blocks, 3u);
  options_.config.cache.num_kv_blocks = 0;
  options_.kv_cache_bytes = 1 << 20;
  const auto plan = PlanOf({});
  ASSERT_TRUE(plan.ok()) << plan.status();
  EXPECT_LE(plan->kv_bytes(), uint64_t{1} << 20);
  EXPECT_GT(plan->kv.Bytes(plan->num_kv_blocks + 1), uint64_t{1} << 20);
}

TEST_F(DeviceRunnerTest, AModelThatDoesNotFitIsRefusedBeforeItsWeightsAreLoaded) {
  RegisterFakeDevice({.memory = {.total_bytes = 100 << 10, .free_bytes = 100 << 10}}, notes_);
  options_.config.cache.num_kv_blocks = 0;
  notes_->Clear();
  const auto described = DescribeModel(LlamaOptions("cuda"));
  ASSERT_TRUE(described.ok()) << described.status();
  const absl::Status status = MakePlan(**described, options_).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted);
  for (const char* part : {"weights ", " + activations ", "100 KiB", "--tensor-parallel-size"}) {
    EXPECT_NE(status.message().find(part), absl::string_view::npos) << part << " in " << status;
  }
  EXPECT_EQ(notes_->weight_bytes, 0u);
  EXPECT_EQ(notes_->allocated_bytes, 0u);
}

TEST_F(DeviceRunnerTest, DecodeGraphsAreInThePlan) {
  options_.config.limits.max_num_seqs = 2;
  const auto two = PlanOf({});
  options_.config.limits.max_num_seqs = 4;
  const auto four = PlanOf({});
  options_.config.device.enforce_eager = true;
  const auto none = PlanOf({});
  ASSERT_TRUE(two.ok() && four.ok() && none.ok());
  EXPECT_EQ(none->graph_bytes, 0u);
  EXPECT_GT(two->graph_bytes, 2 * kGraphNodeBytes);
  EXPECT_EQ(four->graph_bytes, 2 * two->graph_bytes) << "twice as many graphs of as many nodes";
}

// A device loads what it meets there, and not within a step.
TEST_F(DeviceRunnerTest, ThePlanPassMeetsStepsOfAllSizes) {
  options_.config.limits.max_num_seqs = 3;
  options_.config.limits.max_num_batched_tokens = 40;
  ASSERT_TRUE(PlanOf({}).ok());
  EXPECT_EQ(notes_->planned_tokens, (std::set<uint32_t>{1, 2, 3, 5, 10, 20, 40}));
}

TEST_F(DeviceRunnerTest, WeightsCountAsTheBackendHasThem) {
  const auto plain = PlanOf({});
  notes_->Clear();
  const auto padded = PlanOf({.row_padding = 48});
  ASSERT_TRUE(plain.ok() && padded.ok());
  EXPECT_GT(notes_->weight_rows, 0u);
  EXPECT_EQ(padded->weights_bytes, plain->weights_bytes + 48 * notes_->weight_rows);
  EXPECT_EQ(plain->weights_bytes, models_.front()->weight_bytes());
}

TEST_F(DeviceRunnerTest, ShapesSufficeToPlanAStep) {
  const FakeDeviceOptions padded = {.row_padding = 48};
  RunnerPlan loaded = *PlanOf(padded);
  // The same numbers, so the same limit decides: as little as that plan takes without workspace and
  // graphs.
  const uint64_t least =
      loaded.fixed_bytes() - loaded.workspace_bytes - loaded.graph_bytes + loaded.kv.Bytes(1);
  options_.config.cache.num_kv_blocks = 1;
  options_.config.device.gpu_memory_utilization = 1;
  for (const uint64_t total : {least, least - 1}) {
    RegisterFakeDevice(
        {.row_padding = padded.row_padding, .memory = {.total_bytes = total, .free_bytes = total}},
        notes_);
    const auto described = DescribeModel(LlamaOptions("cuda"));
    ASSERT_TRUE(described.ok()) << described.status();
    const absl::Status fits = MakePlan(**described, options_).status();
    EXPECT_EQ(fits.ok(), total == least) << fits;
  }
}

// KiB of the model file's pages that this process holds.
uint64_t MappedKib() {
  std::ifstream smaps("/proc/self/smaps");
  std::string line;
  bool ours = false;
  uint64_t total = 0;
  while (std::getline(smaps, line)) {
    if (line.find('-') < line.find(' ')) ours = line.find("llama/model.gguf") != std::string::npos;
    if (ours && line.rfind("Rss:", 0) == 0) total += std::stoull(line.substr(4));
  }
  return total;
}

TEST_F(DeviceRunnerTest, TheHostKeepsNoneOfTheWeightsThatADeviceHas) {
  const auto on_host = LoadLlama("cpu");
  ASSERT_TRUE(on_host.ok());
  const uint64_t host_kib = MappedKib();
  const auto on_device = LoadLlama("cuda");
  ASSERT_TRUE(on_device.ok());
  const uint64_t device_kib = MappedKib() - host_kib;
  EXPECT_GE(host_kib * 1024, (*on_host)->weight_bytes());
  EXPECT_LT(device_kib, host_kib / 2);
}

TEST_F(DeviceRunnerTest, StrictFailsAStepThatBlocksAndNamesTheCall) {
  const step::StepDescriptor step = MakeStep(1, {{0, 0, 0, {1, 2, 3}}});
  RegisterFakeDevice({.blocks_in_submit = true}, notes_);
  auto strict = StartOn("cuda");
  const absl::Status status = strict->Run(step, Soon()).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_NE(status.message().find("FakeDevice::Submit"), absl::string_view::npos) << status;
  options_.config.device.strict = false;
  auto lenient = StartOn("cuda");
  EXPECT_TRUE(lenient->Run(step, Soon()).ok());
  EXPECT_TRUE(lenient->Run(step, Soon()).ok());
}

}  // namespace
}  // namespace tandem::worker
