// What tests of runners that guess share: where the models are, steps with drafts, and a scenario.
#ifndef TANDEM_TESTS_WORKER_RUNTIME_DRAFT_RIG_H_
#define TANDEM_TESTS_WORKER_RUNTIME_DRAFT_RIG_H_

#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "tests/worker/runtime/fake_device.h"
#include "tests/worker/runtime/runner_rig.h"

namespace tandem::worker {

using Tokens = std::vector<TokenId>;

constexpr uint32_t kDraftBlocks = 20;

// Where the models are.
enum class Place { kHost, kFakeDevice, kFakeGraphs, kEmulatedCuda };

std::string NameOf(const ::testing::TestParamInfo<Place>& param);
// Registers the place as "cuda" for models loaded from now on. `notes` is a fake device's.
void RegisterPlace(Place place, const std::shared_ptr<FakeDeviceNotes>& notes);
config::WorkerConfig DraftConfig(Place place, const std::string& model);

// A runner of one rank in epoch 1 and its model, with memory that is NaN before every step where
// the device does that: emulated CUDA.
struct StartedRunner {
  std::unique_ptr<LoadedModel> model;
  std::unique_ptr<ModelRunner> runner;
};
absl::StatusOr<StartedRunner> StartRunner(const config::WorkerConfig& config);

void WantGuesses(step::StepDescriptor& step);
// A row at each of the sequence's tokens but for the first `num_again` ones, of which all but the
// first are drafts.
void MakeDrafts(size_t sequence, step::StepDescriptor& step, uint32_t num_again = 0);
Tokens Sampled(const step::StepResult& result);

struct RanStep {
  step::StepDescriptor step;
  step::StepResult result;
};

// Nine sequences, for which graphs pad: prompts, decodes of what the step before has drawn, drafts
// of two of them, of which one's are taken back, and a decode. All else is of the test's choice, so
// that all ranks see the same steps.
std::vector<RanStep> RunDraftSteps(ModelRunner& runner);

}  // namespace tandem::worker

#endif  // TANDEM_TESTS_WORKER_RUNTIME_DRAFT_RIG_H_
