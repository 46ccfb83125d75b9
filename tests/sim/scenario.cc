#include "tests/sim/scenario.h"

#include <algorithm>

#include "common/step/limits.h"

namespace tandem::sim {
namespace {

using coordinator::KvGroup;
using std::chrono::milliseconds;
using std::chrono::seconds;

coordinator::SchedulerConfig DrawScheduler(Random& random) {
  const uint32_t chunk = random.OneOf({1u, 5u, 16u, 64u});
  const uint32_t max_num_seqs = static_cast<uint32_t>(random.Between(1, 8));
  return {.max_num_seqs = max_num_seqs,
          .max_num_batched_tokens =
              std::max(max_num_seqs, chunk) + static_cast<uint32_t>(random.Below(24)),
          .chunked_prefill_size = chunk,
          .max_model_len = random.OneOf({24u, 48u, 96u}),
          .max_queue_skips = random.OneOf({0u, 1u, 8u}),
          .target_itl = random.OneOf({milliseconds(0), milliseconds(3)}),
          .policy = random.Chance(0.5) ? coordinator::SchedulingPolicy::kDecodeFirst
                                       : coordinator::SchedulingPolicy::kPrefillFirst};
}

// Between just enough blocks for the longest request and four times that.
coordinator::KvCacheConfig DrawCache(Random& random,
                                     const coordinator::SchedulerConfig& scheduler) {
  coordinator::KvCacheConfig cache{.block_size = random.OneOf({8u, 16u}),
                                   .enable_prefix_cache = random.Chance(0.8),
                                   .prefix_hash_key = random.Next(),
                                   .groups = {}};
  const uint64_t kind = random.Below(4);
  if (kind != 3) cache.groups.push_back({.num_blocks = 0, .window_tokens = 0});
  if (kind >= 2) cache.groups.push_back({.num_blocks = 0, .window_tokens = 11});
  for (KvGroup& group : cache.groups) {
    const uint32_t least =
        cache.MostBlocks(group, scheduler.max_model_len, scheduler.MostStepTokens());
    group.num_blocks = least + static_cast<uint32_t>(random.Below(3 * least + 1));
  }
  return cache;
}

// Few enough to be taken again and again.
coordinator::SnapshotConfig DrawSnapshots(Random& random, uint32_t block_size) {
  return {.num_snapshots = static_cast<uint32_t>(random.Between(1, 8)),
          .interval = block_size * static_cast<uint32_t>(random.Between(1, 4))};
}

bool HasFullAttention(const Scenario& drawn) {
  return std::ranges::count(drawn.engine.kv_cache.groups, 0u, &KvGroup::window_tokens) > 0;
}

// The workers guess, and are often right, or hardly ever; few sequences run, with blocks to spare,
// so that guesses are computed.
void DraftByModel(Random& random, Scenario& drawn) {
  drawn.engine.workers_guess = drawn.model.workers_guess = true;
  coordinator::SchedulerConfig& scheduler = drawn.engine.scheduler;
  scheduler.max_num_seqs = std::min(scheduler.max_num_seqs, 4u);
  scheduler.max_draft_rows = step::kMaxDraftRows;
  for (KvGroup& group : drawn.engine.kv_cache.groups) group.num_blocks += 32;
  if (drawn.model.period == 0 && random.Chance(0.7)) drawn.model.period = 3;
}

}  // namespace

Scenario Scenario::Draw(Random& random) {
  Scenario drawn;
  drawn.num_ranks = static_cast<uint32_t>(random.Between(1, 4));
  drawn.external = random.Chance(0.3);
  drawn.engine.scheduler = DrawScheduler(random);
  drawn.engine.kv_cache = DrawCache(random, drawn.engine.scheduler);
  drawn.model.recurrent = random.Chance(0.4);
  const bool can_go_back = !drawn.model.recurrent || drawn.engine.kv_cache.enable_prefix_cache;
  if (can_go_back && random.Chance(0.5)) {
    drawn.model.period = random.OneOf({0u, 3u, 5u});
    drawn.engine.max_draft_tokens = random.OneOf({1u, 4u, 16u});
    drawn.engine.scheduler.max_draft_rows = random.OneOf({2u, 8u, 64u});  // fewer are drawn at once
    if (random.Chance(0.5) && HasFullAttention(drawn)) DraftByModel(random, drawn);
  }
  coordinator::KvCacheConfig& cache = drawn.engine.kv_cache;
  if (drawn.model.recurrent && cache.enable_prefix_cache) {
    cache.snapshots = DrawSnapshots(random, cache.block_size);
  }
  drawn.engine.vocab_size = drawn.model.vocab_size + 1;
  drawn.engine.hidden_size = drawn.model.hidden_size;
  drawn.has_poison = random.Chance(0.3);
  if (drawn.has_poison || random.Chance(0.5)) drawn.engine.scheduler.max_strikes = 2;
  drawn.engine.max_queued_requests = static_cast<uint32_t>(random.Between(1, 16));
  // Short, so that whoever waits has its turn within the steps that a run allows.
  drawn.engine.priority_ageing = random.OneOf({milliseconds(1), milliseconds(50)});
  drawn.engine.pipeline_depth = static_cast<uint32_t>(random.Between(1, 3));
  drawn.model.window_tokens.clear();
  for (const KvGroup& group : cache.groups) {
    drawn.model.window_tokens.push_back(group.window_tokens);
  }
  const seconds step_timeout = random.OneOf({seconds(2), seconds(5), seconds(60)});
  drawn.engine.step_timeout = step_timeout + milliseconds(500);
  const auto& scheduler = drawn.engine.scheduler;
  drawn.worker = {.model = {.spec = {.max_model_len = scheduler.max_model_len}},
                  .cache = {.block_size = drawn.engine.kv_cache.block_size},
                  .limits = {.max_num_seqs = scheduler.max_num_seqs,
                             .max_num_batched_tokens = scheduler.max_num_batched_tokens},
                  .transport = {.step_transport = config::StepTransport::kGrpc,
                                .step_timeout = step_timeout,
                                .max_result_bytes = {drawn.engine.max_result_bytes}}};
  drawn.load_timeout = seconds(random.Between(30, 300));
  const bool scarce = random.Chance(0.15);
  drawn.max_restarts = scarce ? static_cast<int>(random.Below(4)) : 1 << 20;
  drawn.restart_window = seconds(random.Between(10, 600));
  drawn.arrival_gap = milliseconds(random.OneOf({5, 30, 200, 200, 30000}));
  drawn.fault_gap = milliseconds(random.OneOf({30, 200, 1000, 8000}));
  drawn.network_delay = random.OneOf({milliseconds(1), milliseconds(5)});
  drawn.compute_time = random.OneOf({milliseconds(2), milliseconds(10)});
  drawn.faults_at_start = random.Chance(0.05);
  return drawn;
}

}  // namespace tandem::sim
