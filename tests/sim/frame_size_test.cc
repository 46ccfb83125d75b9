// Frames stay small for any context length: many sequences, long shared prefixes, real rings.
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "tests/coordinator/engine/engine_fixture.h"
#include "tests/coordinator/engine/ring_worker.h"

namespace tandem::coordinator {
namespace {

struct FrameRig {
  std::unique_ptr<EngineCore> core;
  RingWorker* worker = nullptr;
};

FrameRig Start(uint32_t num_seqs, uint32_t context, uint32_t num_blocks) {
  SimulatedEngine engine = SimulatedEngine::Small();
  engine.ranks = 1;
  engine.config.scheduler.max_num_seqs = num_seqs;
  engine.config.scheduler.max_num_batched_tokens = 8192;
  engine.config.scheduler.chunked_prefill_size = 8192;
  engine.config.scheduler.max_model_len = context + 512;
  engine.config.kv_cache = {.block_size = 16,
                            .enable_prefix_cache = true,
                            .groups = {{.num_blocks = num_blocks, .window_tokens = 0}}};
  auto worker = std::make_unique<RingWorker>(0, engine.config.vocab_size, std::vector<uint32_t>{0},
                                             engine.NumBlocks());
  FrameRig rig{.core = nullptr, .worker = worker.get()};
  std::vector<std::unique_ptr<WorkerClient>> workers;
  workers.push_back(std::move(worker));
  rig.core = engine.MakeOn(std::move(workers));
  return rig;
}

void StepOnce(EngineCore& core) {
  const absl::Status status = core.Step();
  ASSERT_TRUE(status.ok()) << status;
}

TEST(FrameSizeTest, ManySequencesWithALongSharedContext) {
  constexpr uint32_t kSeqs = 512, kContext = 65536, kGenerate = 40;
  FrameRig rig = Start(kSeqs, kContext, kContext / 16 + kSeqs * 5);
  EngineCore& core = *rig.core;
  std::vector<std::shared_ptr<RecordingStream>> streams;
  const auto add = [&](uint64_t handle) {
    streams.push_back(std::make_shared<RecordingStream>());
    core.Add(MakeRequest("shared", kContext, kGenerate, streams.back()), handle);
  };
  // The first computes what the others then find.
  add(1);
  while (streams[0]->record().tokens.empty()) ASSERT_NO_FATAL_FAILURE(StepOnce(core));
  for (uint64_t handle = 2; handle <= kSeqs; ++handle) add(handle);
  int64_t most_running = 0;
  while (!core.idle()) {
    ASSERT_NO_FATAL_FAILURE(StepOnce(core));
    most_running = std::max(most_running, core.Stats().running);
  }
  for (const auto& stream : streams) {
    EXPECT_EQ(stream->record().tokens.size(), kGenerate);
  }
  // They do run together; and 16 tables of 4096 blocks, not 511, are the most that one step brings.
  EXPECT_GT(most_running, 400);
  EXPECT_LT(rig.worker->largest_frame(), 400u << 10);
}

TEST(FrameSizeTest, SteadyDecode) {
  constexpr uint32_t kSeqs = 256, kContext = 8192;
  FrameRig rig = Start(kSeqs, kContext, kSeqs * (kContext / 16 + 32));
  EngineCore& core = *rig.core;
  for (uint64_t handle = 1; handle <= kSeqs; ++handle) {
    // Admission takes a step or two per prompt.
    core.Add(
        MakeRequest(std::to_string(handle), kContext, 500, std::make_shared<RecordingStream>()),
        handle);
  }
  while (core.Stats().waiting > 0) ASSERT_NO_FATAL_FAILURE(StepOnce(core));
  ASSERT_NO_FATAL_FAILURE(StepOnce(core));  // the last prefill
  size_t largest = 0;
  for (int step = 0; step < 16 && core.Stats().running == kSeqs; ++step) {
    ASSERT_NO_FATAL_FAILURE(StepOnce(core));
    largest = std::max(largest, rig.worker->last_frame());
  }
  EXPECT_GT(largest, 0u);
  EXPECT_LE(largest, 64u << 10);
  core.EndAll(absl::OkStatus(), FinishReason::kCancelled);
}

}  // namespace
}  // namespace tandem::coordinator
