// Frames stay small for any context length, and within the bound that channels are made for at the
// extremes: many sequences, long shared prefixes, long prompts, over both transports.
#include <gtest/gtest.h>

#include <memory>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "tests/coordinator/engine/channel_worker.h"
#include "tests/coordinator/engine/engine_fixture.h"

namespace tandem::coordinator {
namespace {

struct FrameRig {
  std::unique_ptr<EngineCore> core;
  ChannelWorker* worker = nullptr;
};

FrameRig Start(uint32_t num_seqs, uint32_t context, uint32_t num_blocks,
               config::StepTransport transport = config::StepTransport::kShm,
               uint32_t step_tokens = 8192) {
  SimulatedEngine engine = SimulatedEngine::Small();
  engine.ranks = 1;
  engine.transport = transport;
  engine.config.scheduler.max_num_seqs = num_seqs;
  engine.config.scheduler.max_num_batched_tokens = step_tokens;
  engine.config.scheduler.chunked_prefill_size = step_tokens;
  engine.config.scheduler.max_model_len = context + 512;
  engine.config.kv_cache = {.block_size = 16,
                            .enable_prefix_cache = true,
                            .groups = {{.num_blocks = num_blocks, .window_tokens = 0}}};
  auto worker = std::make_unique<ChannelWorker>(0, engine.config.vocab_size,
                                                std::vector<uint32_t>{0}, engine.NumBlocks());
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

using Transport = config::StepTransport;

class FrameBoundTest : public testing::TestWithParam<Transport> {};

INSTANTIATE_TEST_SUITE_P(Transports, FrameBoundTest,
                         testing::Values(Transport::kShm, Transport::kGrpc), [](const auto& test) {
                           return test.param == Transport::kShm ? "Shm" : "Grpc";
                         });

TEST_P(FrameBoundTest, ManySequencesWithALongSharedContext) {
  constexpr uint32_t kSeqs = 512, kContext = 65536, kGenerate = 40;
  FrameRig rig = Start(kSeqs, kContext, kContext / 16 + kSeqs * 5, GetParam());
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
  EXPECT_LE(rig.worker->largest_frame(), rig.worker->max_descriptor_bytes());
}

// A whole prompt in one step: some 12 bytes a token.
TEST_P(FrameBoundTest, APromptOfAMillionTokens) {
  constexpr uint32_t kTokens = 1 << 20;
  FrameRig rig = Start(4, kTokens, kTokens / 16 + 4, GetParam(), kTokens);
  auto stream = std::make_shared<RecordingStream>();
  rig.core->Add(MakeRequest("long", kTokens, 2, stream), 1);
  while (!rig.core->idle()) ASSERT_NO_FATAL_FAILURE(StepOnce(*rig.core));
  EXPECT_EQ(stream->record().tokens.size(), 2u);
  EXPECT_GT(rig.worker->largest_frame(), 12u << 20);
  EXPECT_LE(rig.worker->largest_frame(), rig.worker->max_descriptor_bytes());
}

// Every sequence adjusts the logits of nearly all ids.
TEST_P(FrameBoundTest, ManySequencesThatBanNearlyAllIds) {
  constexpr uint32_t kSeqs = 2304;
  FrameRig rig = Start(kSeqs, 64, kSeqs, GetParam());
  std::vector<std::shared_ptr<RecordingStream>> streams;
  for (uint64_t handle = 1; handle <= kSeqs; ++handle) {
    streams.push_back(std::make_shared<RecordingStream>());
    Request request = MakeRequest(std::to_string(handle), 3, 2, streams.back());
    request.sampling.end_ids.resize(90);
    std::iota(request.sampling.end_ids.begin(), request.sampling.end_ids.end(), 7);
    request.sampling.min_tokens = 2;
    rig.core->Add(std::move(request), handle);
  }
  while (!rig.core->idle()) ASSERT_NO_FATAL_FAILURE(StepOnce(*rig.core));
  for (const auto& stream : streams) EXPECT_EQ(stream->record().tokens.size(), 2u);
  EXPECT_GT(rig.worker->largest_frame(), 3u << 20);
  EXPECT_LE(rig.worker->largest_frame(), rig.worker->max_descriptor_bytes());
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
