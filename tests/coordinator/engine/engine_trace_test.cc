// What a recording learns of an engine's steps and requests.
#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "coordinator/observe/trace_recorder.h"
#include "tests/coordinator/engine/engine_fixture.h"

namespace tandem::coordinator {
namespace {

using What = RequestChange::What;

class EngineTraceTest : public testing::Test {
 protected:
  void Make() {
    core_ = engine_.Make(&workers_);
    core_->set_trace(&recorder_);
  }
  void Add(RequestHandle handle, uint32_t max_tokens = 5) {
    Request request = MakeRequest("r" + std::to_string(handle), 9, max_tokens,
                                  std::make_shared<RecordingStream>(stop_after_));
    request.trace_id = "trace " + std::to_string(handle);
    core_->Add(std::move(request), handle);
  }
  void Record() {
    recording_ = nullptr;
    recording_ = recorder_.Start().value();
  }
  void RunAll() {
    while (!core_->idle()) ASSERT_EQ(core_->Step(), absl::OkStatus());
  }
  // Adds what was recorded since to the lists below.
  void Take() {
    for (TraceEvent& event : recording_->Take().events) {
      if (auto* submitted = std::get_if<StepSubmitted>(&event)) submitted_.push_back(*submitted);
      if (auto* settled = std::get_if<StepSettled>(&event)) settled_.push_back(*settled);
      if (auto* workers = std::get_if<WorkersChange>(&event)) workers_changes_.push_back(*workers);
      if (auto* change = std::get_if<RequestChange>(&event)) {
        changes_[change->handle].push_back(std::move(*change));
      }
    }
  }
  std::vector<What> WhatsOf(RequestHandle handle) {
    std::vector<What> whats;
    for (const RequestChange& change : changes_[handle]) whats.push_back(change.what);
    return whats;
  }

  SimulatedEngine engine_ = SimulatedEngine::Small();
  size_t stop_after_ = SIZE_MAX;
  TraceRecorder recorder_;
  std::vector<SimulatedWorker*> workers_;
  std::unique_ptr<EngineCore> core_;
  std::unique_ptr<TraceRecorder::Recording> recording_;
  std::vector<StepSubmitted> submitted_;
  std::vector<StepSettled> settled_;
  std::vector<WorkersChange> workers_changes_;
  std::map<RequestHandle, std::vector<RequestChange>> changes_;
};

TEST_F(EngineTraceTest, EveryStepAndEachChangeOfARequest) {
  Make();
  Record();
  Add(1, 5);
  RunAll();
  Take();
  ASSERT_EQ(submitted_.size(), 5u);
  ASSERT_EQ(settled_.size(), 5u);
  for (size_t i = 0; i < 5; ++i) {
    const StepSubmitted& sent = submitted_[i];
    EXPECT_EQ(sent.step, StepId{i + 1});
    EXPECT_EQ(sent.epoch, Epoch{5});
    EXPECT_EQ(sent.kind, i == 0 ? step::StepKind::kPrefill : step::StepKind::kDecode);
    EXPECT_EQ(sent.num_sequences, 1u);
    EXPECT_EQ(sent.prefill_tokens, i == 0 ? 9u : 0u);
    EXPECT_EQ(sent.decode_tokens, i == 0 ? 0u : 1u);
    EXPECT_EQ(sent.draft_tokens, 0u);
    EXPECT_LE(sent.begin, sent.scheduled);
    EXPECT_LE(sent.scheduled, sent.built);
    EXPECT_LE(sent.built, sent.submitted);
    const StepSettled& settled = settled_[i];
    EXPECT_EQ(settled.step, sent.step);
    EXPECT_LE(sent.submitted, settled.begin);
    EXPECT_LE(settled.begin, settled.answered);
    EXPECT_LE(settled.answered, settled.applied);
    EXPECT_LE(settled.applied, settled.delivered);
  }
  // The request arrived before the engine knew of the recording.
  EXPECT_EQ(WhatsOf(1),
            (std::vector{What::kArrived, What::kScheduled, What::kDecodes, What::kEnded}));
  const std::vector<RequestChange>& changes = changes_[1];
  EXPECT_EQ(changes[0].request_id, "r1");
  EXPECT_EQ(changes[0].trace_id, "trace 1");
  EXPECT_EQ(changes[0].prompt_tokens, 9u);
  EXPECT_STREQ(changes[3].reason, "length");
  EXPECT_EQ(changes[3].completion_tokens, 5u);
}

TEST_F(EngineTraceTest, ARecordingThatBeginsLaterKnowsWhatRuns) {
  Make();
  Add(1, 12);
  for (int step = 0; step < 3; ++step) ASSERT_EQ(core_->Step(), absl::OkStatus());
  Record();
  Add(2, 2);
  RunAll();
  Take();
  EXPECT_EQ(WhatsOf(1),
            (std::vector{What::kArrived, What::kScheduled, What::kDecodes, What::kEnded}));
  EXPECT_EQ(WhatsOf(2), WhatsOf(1));
  EXPECT_EQ(submitted_.size() + 4, static_cast<size_t>(core_->timings().steps));
}

TEST_F(EngineTraceTest, NothingIsLeftOfARecordingThatIsOver) {
  Make();
  Record();
  Add(1);
  ASSERT_EQ(core_->Step(), absl::OkStatus());
  recording_ = nullptr;
  ASSERT_EQ(core_->Step(), absl::OkStatus());
  Record();
  RunAll();
  Take();
  EXPECT_EQ(WhatsOf(1),
            (std::vector{What::kArrived, What::kScheduled, What::kDecodes, What::kEnded}));
}

TEST_F(EngineTraceTest, PreemptedRequestsWaitAgain) {
  engine_.config.kv_cache.groups[0].num_blocks = 10;
  Make();
  Record();
  for (RequestHandle handle = 1; handle <= 6; ++handle) Add(handle, 20);
  RunAll();
  Take();
  int64_t num_preempted = 0;
  for (RequestHandle handle = 1; handle <= 6; ++handle) {
    const std::vector<What> whats = WhatsOf(handle);
    std::vector<What> expected{What::kArrived, What::kScheduled, What::kDecodes};
    const int64_t times = std::ranges::count(whats, What::kPreempted);
    for (int64_t i = 0; i < times; ++i) {
      expected.insert(expected.end(), {What::kPreempted, What::kScheduled, What::kDecodes});
    }
    expected.push_back(What::kEnded);
    EXPECT_EQ(whats, expected) << handle;
    num_preempted += times;
  }
  EXPECT_GT(num_preempted, 0);
  EXPECT_EQ(num_preempted, core_->Stats().preemptions);
}

TEST_F(EngineTraceTest, ALossRewindsWhatRuns) {
  Make();
  Record();
  Add(1);
  Add(2);
  ASSERT_EQ(core_->Step(), absl::OkStatus());
  workers_[1]->Kill();
  absl::Status loss;
  while (loss.ok()) loss = core_->Step();
  core_->Rewind(loss);
  workers_.clear();
  core_->Resume(engine_.MakeWorkers(Epoch{6}, &workers_), Duration::zero());
  RunAll();
  Take();
  ASSERT_EQ(workers_changes_.size(), 2u);
  EXPECT_TRUE(workers_changes_[0].lost);
  EXPECT_EQ(workers_changes_[0].epoch, Epoch{5});
  EXPECT_EQ(workers_changes_[0].reason, loss.message());
  EXPECT_FALSE(workers_changes_[1].lost);
  EXPECT_EQ(workers_changes_[1].epoch, Epoch{6});
  for (const RequestHandle handle : {1, 2}) {
    EXPECT_EQ(WhatsOf(handle),
              (std::vector{What::kArrived, What::kScheduled, What::kDecodes, What::kRewound,
                           What::kScheduled, What::kDecodes, What::kEnded}));
  }
  EXPECT_EQ(settled_.size(), static_cast<size_t>(core_->timings().steps));
  EXPECT_GE(submitted_.size(), settled_.size());  // those that were lost
}

// No step was made since the recording began.
TEST_F(EngineTraceTest, ALossOfIdleWorkersIsRecorded) {
  Make();
  Record();
  core_->Rewind(absl::UnavailableError("rank 1 has ended"));
  workers_.clear();
  core_->Resume(engine_.MakeWorkers(Epoch{6}, &workers_), Duration::zero());
  Take();
  ASSERT_EQ(workers_changes_.size(), 2u);
  EXPECT_EQ(workers_changes_[0].reason, "rank 1 has ended");
  EXPECT_FALSE(workers_changes_[1].lost);
}

TEST_F(EngineTraceTest, EndsSayHow) {
  Make();
  Record();
  stop_after_ = 2;
  Add(1);
  RunAll();
  stop_after_ = SIZE_MAX;
  Add(2);
  core_->Cancel(2);
  Add(3);
  ASSERT_EQ(core_->Step(), absl::OkStatus());
  core_->Cancel(3);
  Add(4);
  ASSERT_EQ(core_->Step(), absl::OkStatus());
  core_->EndAll(absl::UnavailableError("lost"), FinishReason::kNone);
  Take();
  EXPECT_STREQ(changes_[1].back().reason, "stop");
  EXPECT_STREQ(changes_[2].back().reason, "cancelled");
  EXPECT_EQ(WhatsOf(2), (std::vector{What::kArrived, What::kEnded}));
  EXPECT_STREQ(changes_[3].back().reason, "cancelled");
  EXPECT_STREQ(changes_[4].back().reason, "error");
  for (const auto& [handle, changes] : changes_) EXPECT_EQ(changes.back().what, What::kEnded);
}

}  // namespace
}  // namespace tandem::coordinator
