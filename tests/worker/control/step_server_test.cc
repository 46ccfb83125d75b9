// What a worker does with the steps of an epoch: on a device that takes two of them, in order, and
// without holding an answer back. Steps that are there before the server runs, or come when the
// device is asked whether it is done, make the order of everything certain.
#include "worker/control/step_server.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <thread>
#include <tuple>
#include <utility>
#include <vector>

#include "common/step/codec.h"
#include "tests/common/transport/in_process_channel.h"
#include "tests/worker/runtime/fake_device.h"
#include "tests/worker/runtime/runner_rig.h"

namespace tandem::worker {
namespace {

using Calls = std::vector<std::string>;

constexpr Duration kTimeout = std::chrono::minutes(1);

// Step `id` decodes the one sequence further: step 1 has its prompt.
step::StepDescriptor Step(uint64_t id) {
  if (id == 1) return MakeStep(1, {{0, 0, 0, {1, 2, 3}}});
  const auto begin = static_cast<uint32_t>(id) + 1;
  step::StepDescriptor step = MakeStep(id, {{0, 0, begin, {0}, (begin + 7) / 8}});
  ReferToSamples(step);
  return step;
}

class StepServerTest : public ::testing::Test {
 protected:
  void Open(const std::string& device) {
    RegisterFakeDevice({}, notes_);
    auto model = LoadLlama(device);
    ASSERT_TRUE(model.ok()) << model.status();
    model_ = *std::move(model);
    runner_ = std::make_unique<ModelRunner>(
        *model_,
        RunnerOptions{
            .config = {
                .model = {.spec = {.max_model_len = 64}},
                .cache = {.block_size = 8, .num_kv_blocks = 4, .kv_cache_type = tensor::Type::kF32},
                .limits = {.max_num_seqs = 1, .max_num_batched_tokens = 16},
                .transport = {.max_result_bytes = {1 << 20}}}});
    ASSERT_TRUE(runner_->Prepare().ok());
    ASSERT_TRUE(runner_->Start(Epoch{1}, {4}, nullptr).ok());
    notes_->calls.clear();
    first_ = 0;
    std::tie(coordinator_, worker_) = transport::MakeInProcessChannel(1 << 20, 8);
  }

  void Send(const step::StepDescriptor& step) {
    std::vector<uint8_t> frame;
    step::Serialize(step, frame);
    ASSERT_TRUE(coordinator_->Send(frame, Soon()).ok());
  }
  step::StepResult Receive() {
    const auto frame = coordinator_->Receive(Soon());
    EXPECT_TRUE(frame.ok()) << frame.status();
    if (!frame.ok()) return {};
    auto result = step::ParseResult(*frame);
    EXPECT_TRUE(result.ok()) << result.status();
    EXPECT_EQ(result->rank, 3u);
    EXPECT_EQ(result->epoch, Epoch{1});
    return *std::move(result);
  }

  // Runs the server on a thread of its own, and `client` on this one.
  template <typename Client>
  void Serve(const Client& client, const Clock& clock = Clock::System()) {
    std::thread server([&] {
      StepServer(*worker_, *runner_, {.epoch = Epoch{1}, .rank = 3, .step_timeout = kTimeout},
                 clock)
          .Serve();
    });
    client();
    coordinator_->Close("the test ends");
    server.join();
  }

  // Numbered from the first call of the server on: Start has submitted steps too.
  Calls CallsOfServer() const {
    Calls calls;
    for (const std::string& call : notes_->calls) {
      const size_t space = call.find(' ');
      const uint64_t number = std::stoull(call.substr(space));
      if (first_ == 0) first_ = number;
      calls.push_back(call.substr(0, space + 1) + std::to_string(number - first_ + 1));
    }
    return calls;
  }

  const std::shared_ptr<FakeDeviceNotes> notes_ = std::make_shared<FakeDeviceNotes>();
  std::unique_ptr<LoadedModel> model_;
  std::unique_ptr<ModelRunner> runner_;
  std::unique_ptr<transport::Channel> coordinator_, worker_;
  mutable uint64_t first_ = 0;
};

TEST_F(StepServerTest, TheNextStepIsSubmittedBeforeTheOldestIsWaitedFor) {
  Open("cuda");
  for (uint64_t id = 1; id <= 3; ++id) Send(Step(id));
  Serve([&] {
    for (uint64_t id = 1; id <= 3; ++id) EXPECT_EQ(Receive().step_id, StepId{id});
  });
  EXPECT_EQ(CallsOfServer(),
            (Calls{"submit 1", "submit 2", "wait 1", "submit 3", "wait 2", "wait 3"}));
}

TEST_F(StepServerTest, TwoAtATimeGiveWhatOneAtATimeGives) {
  std::vector<std::vector<step::RowResult>> rows;
  for (const bool ahead : {false, true}) {
    Open("cuda");
    rows.emplace_back();
    if (ahead) {
      for (uint64_t id = 1; id <= 8; ++id) Send(Step(id));
    }
    Serve([&] {
      for (uint64_t id = 1; id <= 8; ++id) {
        if (!ahead) Send(Step(id));
        const step::StepResult result = Receive();
        ASSERT_EQ(result.status, absl::OkStatus());
        rows.back().push_back(result.rows.at(0));
      }
    });
  }
  EXPECT_EQ(rows[0], rows[1]);
}

// Also one begun behind another: the backend counts its time anew when its turn comes.
TEST_F(StepServerTest, EveryStepHasTheSameTime) {
  Open("cuda");
  for (uint64_t id = 1; id <= 4; ++id) Send(Step(id));
  SimulatedClock clock;
  const TimePoint begin = clock.Now();
  notes_->deadlines.clear();
  Serve(
      [&] {
        for (uint64_t id = 1; id <= 4; ++id) EXPECT_EQ(Receive().status, absl::OkStatus());
      },
      clock);
  EXPECT_EQ(notes_->deadlines, std::vector<TimePoint>(4, begin + kTimeout));
}

TEST_F(StepServerTest, AnAnswerDoesNotWaitForAnotherStep) {
  Open("cuda");
  Serve([&] {
    for (uint64_t id = 1; id <= 3; ++id) {
      Send(Step(id));
      EXPECT_EQ(Receive().status, absl::OkStatus());
    }
  });
  EXPECT_EQ(CallsOfServer(),
            (Calls{"submit 1", "wait 1", "submit 2", "wait 2", "submit 3", "wait 3"}));
}

TEST_F(StepServerTest, AStepThatComesWhileTheDeviceComputesIsBegunAtOnce) {
  Open("cuda");
  Send(Step(1));
  bool sent = false;
  notes_->busy = [&] {
    if (!std::exchange(sent, true)) Send(Step(2));
    return notes_->calls.size() < 2;
  };
  Serve([&] {
    for (uint64_t id = 1; id <= 2; ++id) EXPECT_EQ(Receive().step_id, StepId{id});
  });
  EXPECT_EQ(CallsOfServer(), (Calls{"submit 1", "submit 2", "wait 1", "wait 2"}));
}

TEST_F(StepServerTest, TheHostComputesAStepAtATime) {
  Open("cpu");
  EXPECT_EQ(runner_->max_in_flight(), 1u);
  for (uint64_t id = 1; id <= 3; ++id) Send(Step(id));
  Serve([&] {
    for (uint64_t id = 1; id <= 3; ++id) EXPECT_EQ(Receive().status, absl::OkStatus());
  });
}

TEST_F(StepServerTest, AStepBehindAFailedOneIsRefused) {
  Open("cuda");
  for (uint64_t id = 1; id <= 3; ++id) Send(Step(id));
  notes_->broken_wait = absl::InternalError("broken");
  Serve([&] {
    EXPECT_EQ(Receive().status, absl::InternalError("broken"));
    for (uint64_t id = 2; id <= 3; ++id) {
      const step::StepResult behind = Receive();
      EXPECT_EQ(behind.step_id, StepId{id});
      EXPECT_EQ(behind.status.code(), absl::StatusCode::kFailedPrecondition);
      EXPECT_NE(behind.status.message().find("after step 1, which failed"), absl::string_view::npos)
          << behind.status;
    }
  });
}

// A refusal changes nothing, and is sent when its turn comes.
TEST_F(StepServerTest, AStepThatIsRefusedWaitsForItsTurn) {
  Open("cuda");
  step::StepDescriptor refused = Step(2);
  refused.sampling[0].top_p = 7;
  Send(Step(1));
  Send(refused);
  ASSERT_TRUE(coordinator_->Send(std::vector<uint8_t>{1, 2, 3}, Soon()).ok());
  Send(Step(2));
  Serve([&] {
    EXPECT_EQ(Receive().status, absl::OkStatus());
    EXPECT_EQ(Receive().status.code(), absl::StatusCode::kInvalidArgument);
    EXPECT_FALSE(Receive().status.ok()) << "not a descriptor";
    EXPECT_EQ(Receive().status, absl::OkStatus());
  });
}

// The device still uses their buffers.
TEST_F(StepServerTest, StepsInFlightAreWaitedForWhenTheChannelCloses) {
  Open("cuda");
  Send(Step(1));
  notes_->busy = [&] {
    coordinator_->Close("rank 1 was lost");
    return true;
  };
  Serve([] {});
  EXPECT_EQ(CallsOfServer(), (Calls{"submit 1", "wait 1"}));

  Open("cuda");
  notes_->busy = nullptr;
  for (uint64_t id = 1; id <= 2; ++id) Send(Step(id));
  coordinator_->Close("rank 1 was lost");  // the frames are still read, no answer can be sent
  Serve([] {});
  EXPECT_EQ(CallsOfServer(), (Calls{"submit 1", "submit 2", "wait 1", "wait 2"}));
  EXPECT_TRUE(runner_->Start(Epoch{2}, {4}, nullptr).ok());
}

}  // namespace
}  // namespace tandem::worker
