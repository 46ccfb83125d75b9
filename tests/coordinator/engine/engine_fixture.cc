#include "tests/coordinator/engine/engine_fixture.h"

#include <gtest/gtest.h>

#include <chrono>
#include <utility>

#include "common/base/check.h"

namespace tandem::coordinator {

Taken RecordingStream::OnUpdate(StreamUpdate update) {
  if (on_token_ && !update.tokens.empty()) on_token_();
  std::lock_guard lock(mutex_);
  if (record_.tokens.size() >= stop_after_)
    return {.stopped = true};  // what was drawn after the stop
  TANDEM_CHECK(record_.num_ends == 0) << "an update after the end";
  TANDEM_CHECK(update.prompt_logprobs.empty() || record_.tokens.empty())
      << "the prompt comes first";
  const auto append = [](auto& all, const auto& more) {
    all.insert(all.end(), more.begin(), more.end());
  };
  append(record_.prompt_logprobs, update.prompt_logprobs);
  append(record_.tokens, update.tokens);
  append(record_.logprobs, update.logprobs);
  if (!update.embedding.empty()) record_.embedding = update.embedding;
  record_.usage = update.usage;
  record_.reason = update.reason;
  record_.code = update.status.code();
  record_.message = std::string(update.status.message());
  over_ = update.last() || record_.tokens.size() >= stop_after_;
  return {.stopped = record_.tokens.size() >= stop_after_};
}

void RecordingStream::Flush() {
  std::lock_guard lock(mutex_);
  if (over_ && record_.num_ends == 0) ++record_.num_ends;
  changed_.notify_all();
}

RecordingStream::Record RecordingStream::record() const {
  std::lock_guard lock(mutex_);
  return record_;
}

bool RecordingStream::WaitEnd() {
  std::unique_lock lock(mutex_);
  return changed_.wait_for(lock, std::chrono::minutes(1), [&] { return record_.num_ends > 0; });
}

bool RecordingStream::WaitTokens(size_t count) {
  std::unique_lock lock(mutex_);
  return changed_.wait_for(lock, std::chrono::minutes(1),
                           [&] { return record_.tokens.size() >= count; });
}

SimulatedEngine SimulatedEngine::Small() {
  SimulatedEngine engine;
  engine.config.scheduler = {.max_num_seqs = 16,
                             .max_num_batched_tokens = 64,
                             .chunked_prefill_size = 32,
                             .max_model_len = 64,
                             .policy = SchedulingPolicy::kDecodeFirst};
  engine.config.kv_cache = {.block_size = 4,
                            .enable_prefix_cache = true,
                            .groups = {{.num_blocks = 64, .window_tokens = 0}}};
  engine.config.vocab_size = engine.model.vocab_size;
  engine.config.hidden_size = engine.model.hidden_size;
  engine.config.epoch = Epoch{5};
  engine.config.max_queued_requests = 8;
  return engine;
}

SimulatedModel SimulatedEngine::Model() const {
  SimulatedModel windowed = model;
  windowed.window_tokens.clear();
  for (const KvGroup& group : config.kv_cache.groups) {
    windowed.window_tokens.push_back(group.window_tokens);
  }
  return windowed;
}

std::vector<uint32_t> SimulatedEngine::NumBlocks() const {
  std::vector<uint32_t> num_blocks;
  for (const KvGroup& group : config.kv_cache.groups) num_blocks.push_back(group.num_blocks);
  return num_blocks;
}

config::WorkerConfig SimulatedEngine::WorkerOf() const {
  return {
      .model = {.spec = {.max_model_len = config.scheduler.max_model_len}},
      .cache = {.block_size = config.kv_cache.block_size,
                .state_snapshot_interval = config.kv_cache.snapshots.has_value()
                                               ? config.kv_cache.snapshots->interval
                                               : 0},
      .limits = {.max_num_seqs = config.scheduler.max_num_seqs,
                 .max_num_batched_tokens = config.scheduler.max_num_batched_tokens},
      .transport = {.step_transport = transport, .max_result_bytes = {config.max_result_bytes}}};
}

config::WorkerAssignment SimulatedEngine::AssignmentOf(int rank) const {
  return {.epoch = config.epoch, .rank = rank, .size = ranks};
}

std::unique_ptr<EngineCore> SimulatedEngine::Make(std::vector<SimulatedWorker*>* workers) const {
  ReadyWorkers ready = MakeWorkers(config.epoch, workers);
  return std::make_unique<EngineCore>(config, std::move(*ready.group), *clock);
}

ReadyWorkers SimulatedEngine::MakeWorkers(Epoch epoch,
                                          std::vector<SimulatedWorker*>* workers) const {
  auto clients = MakeSimulatedWorkers(ranks, Model(), NumBlocks(), scripts);
  for (auto& client : clients) {
    if (workers != nullptr) workers->push_back(static_cast<SimulatedWorker*>(client.get()));
  }
  return {.epoch = epoch,
          .group = std::make_unique<WorkerGroup>(Bring(std::move(clients), epoch)),
          .num_blocks = NumBlocks()};
}

std::unique_ptr<EngineCore> SimulatedEngine::MakeOn(
    std::vector<std::unique_ptr<WorkerClient>> workers) const {
  return std::make_unique<EngineCore>(config, Bring(std::move(workers), config.epoch), *clock);
}

WorkerGroup SimulatedEngine::Bring(std::vector<std::unique_ptr<WorkerClient>> workers,
                                   Epoch epoch) const {
  WorkerGroup group(std::move(workers));
  std::vector<config::WorkerAssignment> assignments;
  for (int rank = 0; rank < ranks; ++rank) {
    assignments.push_back(AssignmentOf(rank));
    assignments.back().epoch = epoch;
  }
  const auto blocks =
      group.Bring(WorkerOf(), assignments, Deadline::After(std::chrono::minutes(1), *clock));
  TANDEM_CHECK(blocks.ok()) << blocks.status();
  return group;
}

Request MakeRequest(const std::string& id, size_t prompt_len, uint32_t max_tokens,
                    std::shared_ptr<TokenStream> stream) {
  Request request;
  request.id = id;
  uint32_t state = 1;
  for (char letter : id) state = state * 31 + static_cast<uint8_t>(letter);
  for (size_t i = 0; i < prompt_len; ++i) {
    state = state * 1664525 + 1013904223;  // Numerical Recipes' generator
    request.prompt.push_back(static_cast<TokenId>((state >> 16) % 97));
  }
  request.sampling.temperature = 0;
  request.sampling.max_tokens = max_tokens;
  request.stream = std::move(stream);
  return request;
}

void ExpectStep(EngineCore& core) {
  const absl::Status status = core.Step();
  ASSERT_TRUE(status.ok()) << status;
  const absl::Status integrity = core.CheckIntegrity();
  ASSERT_TRUE(integrity.ok()) << integrity;
}

void RunAll(EngineCore& core) {
  for (int step = 0; !core.idle(); ++step) {
    ASSERT_LT(step, 10000);
    ASSERT_NO_FATAL_FAILURE(ExpectStep(core));
  }
  EXPECT_EQ(core.Stats().free_blocks, core.Stats().total_blocks);
}

}  // namespace tandem::coordinator
