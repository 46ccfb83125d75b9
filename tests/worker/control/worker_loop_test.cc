// What a worker answers to commands and what ends its waits, by a control stream that the test
// holds.
#include "worker/control/worker_loop.h"

#include <gtest/gtest.h>

#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "common/base/clock.h"
#include "common/base/log.h"
#include "tests/worker/control/scripted_stream.h"
#include "tests/worker/runtime/fake_device.h"

namespace tandem::worker {
namespace {

TEST(WorkerLoopTest, AnAbortBeforeTheCommunicatorIsThereEndsItsJoin) {
  constexpr Epoch kEpoch{4};
  ScriptedStream stream({Configure(kEpoch, 2), LoadCommand{kEpoch}});
  const absl::Status reason = absl::AbortedError("rank 1 was lost");
  // Between opening and joining; without rank 1 the join would take its whole deadline.
  stream.in_put = [&] { stream.Abort(kEpoch, reason); };
  EXPECT_TRUE(WorkerLoop(stream, {}).Run().ok());
  EXPECT_EQ(stream.failures, (std::vector<absl::Status>{reason}));
  EXPECT_EQ(stream.readies, 0);
}

// A shutdown while it loads; the coordinator does not wait for an answer to that.
TEST(WorkerLoopTest, AnEpochThatIsOverMayEndUnheard) {
  constexpr Epoch kEpoch{4};
  ScriptedStream stream({Configure(kEpoch, 2), LoadCommand{kEpoch}});
  stream.in_put = [&] { stream.Abort(kEpoch, absl::CancelledError("shutdown")); };
  stream.on_failed = absl::UnavailableError("the coordinator is gone");
  EXPECT_TRUE(WorkerLoop(stream, {}).Run().ok());
  EXPECT_EQ(stream.failures.size(), 1u);
}

// Rank 0 does not join in time, and the coordinator is gone: the exit code says that it is gone.
TEST(WorkerLoopTest, AFailureThatNobodyHearsIsTheExitsReason) {
  constexpr Epoch kEpoch{4};
  ScriptedStream stream({Configure(kEpoch, 2, /*rank=*/1), LoadCommand{kEpoch}});
  stream.on_failed = absl::UnavailableError("the coordinator is gone");
  SimulatedClock clock;
  EXPECT_EQ(WorkerLoop(stream, {}, clock).Run(), stream.on_failed);
}

TEST(WorkerLoopTest, AJoinWithoutRankZeroEndsAtItsDeadline) {
  constexpr Epoch kEpoch{4};
  ScriptedStream stream({Configure(kEpoch, 2, /*rank=*/1), LoadCommand{kEpoch}});
  SimulatedClock clock;
  const TimePoint begin = clock.Now();
  const absl::Status ended = WorkerLoop(stream, {}, clock).Run();
  ASSERT_EQ(stream.failures.size(), 1u);
  EXPECT_EQ(ended, stream.failures[0]) << "for the exit code";
  EXPECT_EQ(stream.failures[0].code(), absl::StatusCode::kDeadlineExceeded);
  EXPECT_EQ(clock.Now() - begin, std::chrono::minutes(1));
}

// Another machine may read its part from a slow disk: that is the coordinator's to bound.
TEST(WorkerLoopTest, OthersMayTakeLongToLoad) {
  constexpr Epoch kEpoch{4};
  for (const int rank : {0, 1}) {
    ScriptedStream stream({Configure(kEpoch, 2, rank), LoadCommand{kEpoch}});
    stream.others_have_loaded = false;
    SimulatedClock clock;
    const TimePoint begin = clock.Now();
    EXPECT_FALSE(WorkerLoop(stream, {}, clock).Run().ok());
    ASSERT_EQ(stream.failures.size(), 1u);
    EXPECT_NE(stream.failures[0].message().find(rank == 0 ? "loaded/1" : "loaded/0"),
              absl::string_view::npos)
        << stream.failures[0];
    EXPECT_EQ(clock.Now() - begin, std::chrono::hours(24));
  }
}

TEST(WorkerLoopTest, AnAbortOfTheEpochBeforeDoesNot) {
  constexpr Epoch kEpoch{4};
  ScriptedStream stream({Configure(kEpoch, 1), LoadCommand{kEpoch}});
  WorkerLoop loop(stream, {});
  stream.Abort(Epoch{3}, absl::AbortedError("of the epoch before"));
  EXPECT_TRUE(loop.Run().ok());
  EXPECT_TRUE(stream.failures.empty());
  EXPECT_EQ(stream.readies, 1);
}

// The abort overtakes Configure, which the main thread takes only now.
TEST(WorkerLoopTest, AnEpochThatIsOverServesNoSteps) {
  constexpr Epoch kEpoch{4};
  ScriptedStream stream({Configure(kEpoch, 1), LoadCommand{kEpoch}, StartCommand{kEpoch, {8}}});
  WorkerLoop loop(stream, {});
  stream.Abort(kEpoch, absl::AbortedError("rank 1 was lost"));
  EXPECT_TRUE(loop.Run().ok());
  EXPECT_TRUE(stream.failures.empty());
}

TEST(WorkerLoopTest, RefusesMoreRanksThanACommunicatorHas) {
  ScriptedStream stream({Configure(Epoch{4}, 65)});
  EXPECT_FALSE(WorkerLoop(stream, {}).Run().ok());
  EXPECT_EQ(
      stream.failures,
      (std::vector<absl::Status>{absl::InvalidArgumentError("Configure: 65 ranks, at most 64")}));
}

TEST(WorkerLoopTest, LoadsOncePerEpoch) {
  constexpr Epoch kEpoch{4};
  ScriptedStream stream({LoadCommand{kEpoch}, Configure(kEpoch, 1), LoadCommand{kEpoch},
                         LoadCommand{kEpoch}, StartCommand{kEpoch, {8}}, LoadCommand{kEpoch},
                         StartCommand{kEpoch, {8}}});
  WorkerLoop loop(stream, {});
  stream.Abort(kEpoch, absl::AbortedError("so that no steps are waited for"));
  EXPECT_TRUE(loop.Run().ok());
  const absl::Status load = absl::FailedPreconditionError("Load belongs after Configure, once");
  const absl::Status start = absl::FailedPreconditionError("Start belongs after Ready, once");
  EXPECT_EQ(stream.failures, (std::vector<absl::Status>{load, load, load, start}));
  EXPECT_EQ(stream.readies, 1);
}

TEST(WorkerLoopTest, DoesNotStartWhatFailedToLoad) {
  constexpr Epoch kEpoch{4};
  ScriptedStream stream({Configure(kEpoch, 2), LoadCommand{kEpoch}, StartCommand{kEpoch, {8}}});
  const absl::Status reason = absl::AbortedError("rank 1 was lost");
  stream.in_put = [&] { stream.Abort(kEpoch, reason); };
  EXPECT_TRUE(WorkerLoop(stream, {}).Run().ok());
  EXPECT_EQ(stream.failures,
            (std::vector<absl::Status>{
                reason, absl::FailedPreconditionError("Start belongs after Ready, once")}));
}

// With the model as its own draft model.
ConfigureCommand ConfigureDraft(Epoch epoch, const std::string& path, uint64_t fingerprint = 0) {
  ConfigureCommand command = Configure(epoch, 1);
  command.config.model.draft_path = path;
  command.assignment.draft_fingerprint = fingerprint;
  return command;
}

// Weights are kept for the next epoch, unless the draft model is another one.
TEST(WorkerLoopTest, AnotherDraftModelIsLoadedAnewAndCompared) {
  constexpr uint64_t kOther = 0x123;
  ScriptedStream stream({ConfigureDraft(Epoch{1}, kModel), LoadCommand{Epoch{1}},
                         ConfigureDraft(Epoch{2}, kModel), LoadCommand{Epoch{2}},
                         ConfigureDraft(Epoch{3}, kModel, kOther), LoadCommand{Epoch{3}}});
  EXPECT_FALSE(WorkerLoop(stream, {}).Run().ok());
  EXPECT_EQ(stream.readies, 2);
  ASSERT_EQ(stream.failures.size(), 1u);
  EXPECT_EQ(stream.failures[0].code(), absl::StatusCode::kFailedPrecondition);
  const std::string message(stream.failures[0].message());
  EXPECT_TRUE(message.starts_with(kModel)) << message;
  EXPECT_NE(message.find("differs from the coordinator's"), std::string::npos) << message;
  EXPECT_NE(message.find("0000000000000123 there"), std::string::npos) << message;
}

TEST(WorkerLoopTest, TheDraftModelsPathHereCanBeAnother) {
  ScriptedStream without({ConfigureDraft(Epoch{1}, "nowhere.gguf"), LoadCommand{Epoch{1}}});
  EXPECT_FALSE(WorkerLoop(without, {}).Run().ok());
  ASSERT_EQ(without.failures.size(), 1u);
  EXPECT_EQ(without.failures[0].message().find("nowhere.gguf: "), 0u) << without.failures[0];

  ScriptedStream with({ConfigureDraft(Epoch{1}, "nowhere.gguf"), LoadCommand{Epoch{1}}});
  EXPECT_TRUE(WorkerLoop(with, {.draft_model = kModel}).Run().ok());
  EXPECT_EQ(with.readies, 1);
  // A server without a draft model has none here either.
  ScriptedStream none({Configure(Epoch{1}, 1), LoadCommand{Epoch{1}}});
  EXPECT_TRUE(WorkerLoop(none, {.draft_model = "nowhere.gguf"}).Run().ok());
  EXPECT_EQ(none.readies, 1);
}

TEST(WorkerLoopTest, ABrokenDeviceEndsTheWorkerAtTheNextConfigure) {
  const auto notes = std::make_shared<FakeDeviceNotes>();
  RegisterFakeDevice({}, notes);
  ConfigureCommand first = Configure(Epoch{1}, 1), second = Configure(Epoch{2}, 1);
  first.config.device.device = second.config.device.device = config::Device::kCuda;
  first.config.cache.kv_cache_type = second.config.cache.kv_cache_type = tensor::Type::kF32;
  ScriptedStream stream({first, LoadCommand{Epoch{1}}, second, LoadCommand{Epoch{2}}});
  stream.on_ready = [&] { notes->broken = absl::InternalError("an illegal memory access"); };
  EXPECT_EQ(WorkerLoop(stream, {}).Run(),
            absl::InternalError("the device takes no more work: an illegal memory access"));
  EXPECT_TRUE(stream.failures.empty());
  EXPECT_EQ(stream.readies, 1);
}

TEST(WorkerLoopTest, LogsAtTheConfiguredLevel) {
  const LogLevel before = GetLogLevel();
  ConfigureCommand command = Configure(Epoch{1}, 1);
  command.config.log_level = LogLevel::kError;
  ScriptedStream stream({command});
  EXPECT_TRUE(WorkerLoop(stream, {}).Run().ok());
  EXPECT_EQ(GetLogLevel(), LogLevel::kError);
  SetLogLevel(before);
}

}  // namespace
}  // namespace tandem::worker
