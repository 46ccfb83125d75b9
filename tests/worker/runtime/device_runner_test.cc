// ModelRunner on a device: no touch of device memory by the host, one copy up and one down.
#include <gtest/gtest.h>

#include <memory>
#include <vector>

#include "tests/worker/runtime/fake_device.h"
#include "tests/worker/runtime/runner_rig.h"

namespace tandem::worker {
namespace {

class DeviceRunnerTest : public ::testing::Test {
 protected:
  void SetUp() override {
    RegisterFakeDevice({.graphs = false}, notes_);
    options_ = {.kv_cache_type = tensor::Type::kF32,
                .block_size = 8,
                .max_num_seqs = 4,
                .max_num_batched_tokens = 32,
                .max_model_len = 64,
                .kv_cache_bytes = 0,
                .num_kv_blocks = 16,
                .max_result_bytes = 1 << 20};
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

TEST_F(DeviceRunnerTest, AStepThatWantsNothingBringsNothingBack) {
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

}  // namespace
}  // namespace tandem::worker
