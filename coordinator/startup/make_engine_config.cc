#include "coordinator/startup/make_engine_config.h"

#include <algorithm>
#include <chrono>

#include "absl/strings/str_cat.h"
#include "common/kv/snapshot_interval.h"
#include "common/kv/snapshots.h"
#include "common/step/limits.h"

namespace tandem::coordinator {
namespace {

// The engine waits slightly longer than a worker, so that the worker's error, which has more
// detail, comes first.
constexpr auto kCollectGrace = std::chrono::seconds(1);

// The loss after which a request is computed alone: the first may be chance. With the loss that
// proves it, a request that workers do not survive costs three restarts.
constexpr uint32_t kMaxStrikes = 2;

// The workers' pause before a step that was not sent ahead, 0.1 to 0.2 ms, is at most two
// hundredths of such a step. On GPUs it was not measured.
constexpr auto kLongCpuStep = std::chrono::milliseconds(10);

uint32_t ChunkSize(const config::WorkerConfig& worker, const config::SchedulingConfig& scheduling) {
  return scheduling.chunked_prefill_size != 0 ? scheduling.chunked_prefill_size
                                              : worker.limits.max_num_batched_tokens;
}

config::Speculation SpeculationOf(const config::WorkerConfig& worker,
                                  const config::SchedulingConfig& scheduling,
                                  const model::ModelSpec& spec) {
  if (scheduling.speculation != config::Speculation::kAuto) return scheduling.speculation;
  const bool pays = worker.device.device == config::Device::kCpu && !spec.moe.has_value() &&
                    !spec.delta_net.has_value();
  return pays ? config::Speculation::kNgram : config::Speculation::kOff;
}

}  // namespace

EngineConfig MakeEngineConfig(const config::WorkerConfig& worker,
                              const config::SchedulingConfig& scheduling,
                              const model::ModelSpec& spec, Epoch epoch,
                              const std::vector<uint32_t>& num_blocks) {
  const config::LimitsConfig& limits = worker.limits;
  EngineConfig config;
  config.scheduler.max_num_seqs = limits.max_num_seqs;
  config.scheduler.max_num_batched_tokens = limits.max_num_batched_tokens;
  config.scheduler.chunked_prefill_size = ChunkSize(worker, scheduling);
  config.scheduler.max_model_len = worker.model.spec.max_model_len;
  config.scheduler.max_strikes = kMaxStrikes;
  config.scheduler.max_queue_skips = scheduling.max_queue_skips;
  config.scheduler.target_itl = std::chrono::milliseconds(scheduling.target_itl_ms);
  config.scheduler.policy = scheduling.policy;
  config.kv_cache.block_size = worker.cache.block_size;
  config.kv_cache.enable_prefix_cache = scheduling.enable_prefix_caching;
  if (const uint32_t interval = worker.cache.state_snapshot_interval; interval > 0) {
    config.kv_cache.snapshots = {.num_snapshots = kv::NumSnapshots(num_blocks, worker.cache),
                                 .interval = interval};
  }
  for (size_t group = 0; group < num_blocks.size(); ++group) {
    config.kv_cache.groups.push_back({.num_blocks = num_blocks[group],
                                      .window_tokens = spec.kv_groups[group].window_tokens,
                                      .chunked = spec.kv_groups[group].chunked});
  }
  config.vocab_size = spec.vocab_size;
  config.hidden_size = spec.hidden_size;
  config.num_adapters = static_cast<uint32_t>(worker.model.lora_modules.size());
  config.epoch = epoch;
  config.max_queued_requests = scheduling.max_queued_requests;
  config.max_queued_tokens = scheduling.max_queued_tokens;
  config.priority_ageing = scheduling.priority_ageing;
  const config::Speculation speculation = SpeculationOf(worker, scheduling, spec);
  const bool can_go_back = !spec.delta_net.has_value() || config.kv_cache.snapshots.has_value();
  if (speculation != config::Speculation::kOff && can_go_back) {
    config.workers_guess = speculation != config::Speculation::kNgram;
    config.max_draft_tokens = scheduling.max_draft_tokens;
    config.scheduler.max_draft_rows = step::kMaxDraftRows;
  }
  config.pipeline_depth = scheduling.overlap ? step::kPipelineDepth : 1;
  if (worker.device.device == config::Device::kCpu) config.overlap_below = kLongCpuStep;
  config.max_result_bytes = worker.transport.max_result_bytes.bytes;
  config.step_timeout = worker.transport.step_timeout + kCollectGrace;
  return config;
}

std::string WhyNoDrafts(const config::WorkerConfig& worker,
                        const config::SchedulingConfig& scheduling, const model::ModelSpec& spec) {
  if (scheduling.speculation == config::Speculation::kOff ||
      scheduling.speculation == config::Speculation::kAuto) {
    return "";
  }
  constexpr char kNone[] = "no speculation: ";
  if (spec.delta_net.has_value() && !scheduling.enable_prefix_caching) {
    return absl::StrCat(kNone,
                        "the model has recurrent layers, which go back to before a wrong guess by "
                        "a snapshot, and there are none with --no-enable-prefix-caching");
  }
  const uint32_t tokens =
      std::min(ChunkSize(worker, scheduling), worker.limits.max_num_batched_tokens);
  if (tokens >= 2) return "";
  return absl::StrCat(kNone,
                      "a step has at most one token of a sequence "
                      "(--max-num-batched-tokens, --chunked-prefill-size), a guess needs 2");
}

}  // namespace tandem::coordinator
