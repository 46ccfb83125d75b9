// Steps that are begun while the one before is in flight give, to the bit, what they give one at a
// time: encoded and replayed, with drafts, logits and log-probabilities, with memory that is NaN
// before every step where the device does that.
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "tests/worker/runtime/draft_rig.h"

namespace tandem::worker {
namespace {

class StepsInFlightTest : public ::testing::TestWithParam<Place> {
 protected:
  // With the model as its own draft model.
  void Start(Place place = GetParam()) {
    RegisterPlace(place, notes_);
    config::WorkerConfig config = DraftConfig(place, kLlama);
    config.model.draft_path = kLlama;
    started_ = {};
    auto started = StartRunner(config);
    ASSERT_TRUE(started.ok()) << started.status();
    started_ = *std::move(started);
  }

  // Prompts, decodes by reference, drafts, and a decode; two of them can't be replayed.
  std::vector<step::StepDescriptor> Steps() {
    Start(Place::kFakeDevice);  // the fastest: the steps are the same everywhere
    std::vector<step::StepDescriptor> steps;
    for (RanStep& ran : RunDraftSteps(*started_.runner)) steps.push_back(std::move(ran.step));
    for (const size_t i : {1, 2}) {
      steps.at(i).rows[i].wants |= step::kWantLogits | step::kWantSampleLogprob;
    }
    return steps;
  }

  // What comes back if `ahead` steps are begun before the oldest is waited for. The results' times
  // are left out.
  std::vector<step::StepResult> Run(const std::vector<step::StepDescriptor>& steps, size_t ahead) {
    Start();
    std::vector<StepTicket> begun;
    std::vector<step::StepResult> results;
    const auto finish = [&] {
      auto result = started_.runner->Finish(begun[results.size()]);
      ASSERT_TRUE(result.ok()) << result.status();
      result->timings = {};
      results.push_back(*std::move(result));
    };
    for (const step::StepDescriptor& step : steps) {
      const auto ticket = started_.runner->Begin(step, Soon());
      EXPECT_TRUE(ticket.ok()) << ticket.status();
      if (!ticket.ok()) return results;
      begun.push_back(*ticket);
      if (begun.size() - results.size() == ahead) finish();
    }
    while (results.size() < begun.size()) finish();
    return results;
  }

  const std::shared_ptr<FakeDeviceNotes> notes_ = std::make_shared<FakeDeviceNotes>();
  StartedRunner started_;
};

INSTANTIATE_TEST_SUITE_P(Places, StepsInFlightTest,
                         ::testing::Values(Place::kFakeDevice, Place::kFakeGraphs,
                                           Place::kEmulatedCuda),
                         &NameOf);

TEST_P(StepsInFlightTest, TwoGiveWhatOneAtATimeGives) {
  const std::vector<step::StepDescriptor> steps = Steps();
  ASSERT_EQ(steps.size(), 6u);
  const std::vector<step::StepResult> expected = Run(steps, 1);
  EXPECT_EQ(Run(steps, 2), expected);
  EXPECT_FALSE(expected[1].rows[1].logits.empty());
}

TEST_P(StepsInFlightTest, AStepThatCannotBeSubmittedLeavesTheOneBefore) {
  Start();
  const auto first = started_.runner->Begin(MakeStep(1, {{0, 0, 0, {1, 2, 3}}}), Soon());
  ASSERT_TRUE(first.ok()) << first.status();
  step::StepDescriptor refused = MakeStep(2, {{0, 0, 3, {4}, 1}});
  refused.epoch = Epoch{2};
  EXPECT_EQ(started_.runner->Begin(refused, Soon()).status().code(),
            absl::StatusCode::kFailedPrecondition);
  if (GetParam() != Place::kEmulatedCuda) {
    notes_->broken = absl::InternalError("full");
    EXPECT_EQ(started_.runner->Begin(MakeStep(2, {{0, 0, 3, {4}, 1}}), Soon()).status(),
              notes_->broken);
    notes_->broken = absl::OkStatus();
  }
  EXPECT_EQ(started_.runner->Finish(*first).status(), absl::OkStatus());
}

}  // namespace
}  // namespace tandem::worker
