#include "coordinator/server/bring_up.h"

#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "common/base/host.h"
#include "common/base/status.h"
#include "common/base/token_file.h"
#include "common/kv/kv_shape.h"
#include "common/model/kv_cache_type.h"
#include "common/model/shard.h"
#include "common/tensor/type.h"

namespace tandem::coordinator {
namespace {

constexpr uint64_t kDefaultKvBytes = 4ull << 30;
// The engine waits a little longer than a worker does, so that the worker's own error, which says
// more, comes first.
constexpr auto kCollectGrace = std::chrono::seconds(1);
// What a StepResult may take: tokens and timings need kilobytes, a scored prompt token up to 264
// bytes; room for tests that ask for logits of a small vocabulary.
constexpr uint64_t kMaxResultBytes = 8 << 20;

// The worker program that was named, or the one for the device beside this program.
absl::StatusOr<std::string> WorkerBinary(const WorkerOptions& options) {
  if (!options.worker_binary.empty()) return options.worker_binary;
  std::error_code error;
  const auto folder = std::filesystem::read_symlink("/proc/self/exe", error).parent_path();
  if (options.device != "cuda") return (folder / "tandem_worker").string();
  const auto binary = folder / "tandem_worker_cuda";
  if (std::filesystem::exists(binary, error)) return binary.string();
  return absl::UnavailableError(absl::StrCat(
      "--device cuda: there is no tandem_worker_cuda in ", folder.string(),
      ": it was built without the CUDA toolkit; build with it, or name one with --worker-binary"));
}

absl::StatusOr<uint32_t> MaxModelLen(const WorkerOptions& options, const model::ModelSpec& spec) {
  if (options.max_model_len == 0) return spec.context_length;
  if (options.max_model_len <= spec.context_length) return options.max_model_len;
  return absl::InvalidArgumentError(absl::StrCat("--max-model-len ", options.max_model_len,
                                                 " exceeds the model's context length ",
                                                 spec.context_length));
}

int ThreadsPerWorker(const WorkerOptions& options) {
  if (options.threads_per_worker > 0) return options.threads_per_worker;
  const int cores = static_cast<int>(std::thread::hardware_concurrency());
  return std::max(1, cores / options.tensor_parallel_size);
}

std::vector<WorkerConfig> MakeConfigs(const WorkerOptions& options, const ModelFile& model,
                                      uint32_t max_model_len, int threads,
                                      const std::vector<uint64_t>& kv_bytes, Epoch epoch,
                                      const std::vector<int>& local_ranks) {
  std::vector<WorkerConfig> configs;
  for (int rank = 0; rank < options.tensor_parallel_size; ++rank) {
    WorkerConfig config;
    config.epoch = epoch;
    config.rank = rank;
    config.size = options.tensor_parallel_size;
    config.model_path = model.path;
    config.model_fingerprint = model.fingerprint;
    config.device = options.device;
    config.device_index = local_ranks[static_cast<size_t>(rank)];
    config.cpu_kernels = options.cpu_kernels;
    config.threads = threads;
    config.expert_parallel = options.expert_parallel;
    config.rope_scaling = options.rope_scaling;
    config.rope_scale = options.rope_scale;
    config.kv_cache_type = options.kv_cache_type;
    config.block_size = options.block_size;
    config.max_num_seqs = options.max_num_seqs;
    config.max_num_batched_tokens = options.max_num_batched_tokens;
    config.max_model_len = max_model_len;
    config.kv_cache_bytes = kv_bytes[static_cast<size_t>(rank)];
    config.num_kv_blocks = options.num_kv_blocks;
    config.gpu_memory_utilization = options.gpu_memory_utilization;
    config.enforce_eager = options.enforce_eager;
    config.strict = options.strict;
    config.step_transport = options.step_transport;
    config.step_timeout_ms = static_cast<int64_t>(options.step_timeout_s * 1000);
    config.max_result_bytes = kMaxResultBytes;
    configs.push_back(std::move(config));
  }
  return configs;
}

EngineConfig MakeEngineConfig(const WorkerOptions& options, const model::ModelSpec& spec,
                              uint32_t max_model_len, Epoch epoch,
                              const std::vector<uint32_t>& num_blocks) {
  EngineConfig config;
  config.scheduler.max_num_seqs = options.max_num_seqs;
  config.scheduler.max_num_batched_tokens = options.max_num_batched_tokens;
  config.scheduler.chunked_prefill_size = options.chunked_prefill_size != 0
                                              ? options.chunked_prefill_size
                                              : options.max_num_batched_tokens;
  config.scheduler.max_model_len = max_model_len;
  config.scheduler.policy = options.scheduling_policy == "prefill-first"
                                ? SchedulingPolicy::kPrefillFirst
                                : SchedulingPolicy::kDecodeFirst;
  config.kv_cache.block_size = options.block_size;
  config.kv_cache.enable_prefix_cache = options.enable_prefix_caching;
  for (size_t group = 0; group < num_blocks.size(); ++group) {
    config.kv_cache.groups.push_back(
        {.num_blocks = num_blocks[group], .window_tokens = spec.kv_groups[group].window_tokens});
  }
  config.vocab_size = spec.vocab_size;
  config.epoch = epoch;
  config.max_queued_requests = options.max_queued_requests;
  config.max_result_bytes = kMaxResultBytes;
  config.step_timeout =
      std::chrono::duration_cast<Duration>(std::chrono::duration<double>(options.step_timeout_s)) +
      kCollectGrace;
  return config;
}

// All ranks' shard plans; the error says why a tensor-parallel size is not possible.
absl::StatusOr<std::vector<model::ShardPlan>> ShardPlans(const model::ModelSpec& spec, int size,
                                                         bool expert_parallel) {
  std::vector<model::ShardPlan> plans;
  for (int rank = 0; rank < size; ++rank) {
    TANDEM_ASSIGN_OR_RETURN(model::ShardPlan plan,
                            model::MakeShardPlan(spec, rank, size, expert_parallel));
    plans.push_back(plan);
  }
  return plans;
}

}  // namespace

absl::StatusOr<uint64_t> ParseBytes(const std::string& text) {
  absl::string_view number = text;
  uint64_t unit = 1;
  for (const auto& [suffix, bytes] : {std::pair<const char*, uint64_t>{"KiB", 1ull << 10},
                                      {"MiB", 1ull << 20},
                                      {"GiB", 1ull << 30}}) {
    if (absl::ConsumeSuffix(&number, suffix)) unit = bytes;
  }
  uint64_t value = 0;
  uint64_t bytes = 0;
  if (!absl::SimpleAtoi(number, &value) || value == 0 ||
      __builtin_mul_overflow(value, unit, &bytes)) {
    return absl::InvalidArgumentError(
        absl::StrCat("'", text, "' is no amount of memory: write 512MiB, 2GiB or bytes"));
  }
  return bytes;
}

std::vector<int> LocalRanks(const std::vector<std::string>& host_ids) {
  std::vector<int> local;
  for (auto rank = host_ids.begin(); rank != host_ids.end(); ++rank) {
    local.push_back(static_cast<int>(std::count(host_ids.begin(), rank, *rank)));
  }
  return local;
}

absl::StatusOr<std::vector<uint64_t>> KvBytesPerRank(const WorkerOptions& options,
                                                     const model::ModelSpec& spec,
                                                     uint32_t max_model_len,
                                                     uint64_t available_bytes) {
  TANDEM_ASSIGN_OR_RETURN(const tensor::Type type, model::ParseKvCacheType(options.kv_cache_type));
  TANDEM_RETURN_IF_ERROR(model::CheckKvCacheType(spec, type));
  TANDEM_ASSIGN_OR_RETURN(auto plans,
                          ShardPlans(spec, options.tensor_parallel_size, options.expert_parallel));
  const bool by_default = options.num_kv_blocks == 0 && options.kv_cache_memory == "auto";
  const bool on_device = options.device == "cuda";
  // The worker computes it from what its device has.
  if (on_device && by_default) return std::vector<uint64_t>(plans.size(), 0);
  std::vector<kv::KvShape> ranks;
  for (const model::ShardPlan& plan : plans) {
    ranks.push_back(kv::MakeKvShape(spec, plan, type,
                                    {.block_tokens = options.block_size,
                                     .max_num_seqs = options.max_num_seqs,
                                     .max_num_batched_tokens = options.max_num_batched_tokens,
                                     .max_model_len = max_model_len}));
  }
  uint64_t blocks = options.num_kv_blocks;
  if (by_default) {
    const uint64_t per_seq = (max_model_len + options.block_size - 1) / options.block_size;
    const uint64_t limit = std::min(kDefaultKvBytes, available_bytes);
    blocks = std::min(per_seq * options.max_num_seqs, kv::MostBlocks(ranks, limit));
  } else if (blocks == 0) {
    TANDEM_ASSIGN_OR_RETURN(const uint64_t bytes, ParseBytes(options.kv_cache_memory));
    blocks = kv::MostBlocks(ranks, bytes);
  }
  if (blocks == 0) {
    return absl::ResourceExhaustedError(
        absl::StrCat("the KV cache memory holds no block: one takes ", kv::TotalBytes(ranks, 1),
                     " bytes over all ranks"));
  }
  if (const uint64_t needed = kv::TotalBytes(ranks, blocks);
      !on_device && needed > available_bytes) {
    return absl::ResourceExhaustedError(absl::StrCat("the KV cache of all ranks needs ", needed,
                                                     " bytes (", blocks, " blocks), only ",
                                                     available_bytes, " bytes of memory are free"));
  }
  std::vector<uint64_t> bytes;
  for (const kv::KvShape& rank : ranks) bytes.push_back(rank.Bytes(blocks));
  return bytes;
}

absl::StatusOr<Workers> BringUp(const WorkerOptions& options, const ModelFile& model,
                                const std::function<bool()>& cancelled) {
  TANDEM_RETURN_IF_ERROR(Validate(options));
  TANDEM_ASSIGN_OR_RETURN(const uint32_t max_model_len, MaxModelLen(options, model.spec));
  TANDEM_ASSIGN_OR_RETURN(
      const std::vector<uint64_t> kv_bytes,
      KvBytesPerRank(options, model.spec, max_model_len, AvailableMemoryBytes()));
  TANDEM_ASSIGN_OR_RETURN(const std::string worker_binary, WorkerBinary(options));
  ClusterOptions cluster_options{
      .size = options.tensor_parallel_size,
      .external = options.workers == "external",
      .worker_listen = options.worker_listen,
      .worker_token = {},
      .worker_binary = worker_binary,
      // NCCL and gRPC reach further than shared memory.
      .one_host = options.device != "cuda" || options.step_transport == "shm"};
  if (!options.worker_token_file.empty()) {
    TANDEM_ASSIGN_OR_RETURN(cluster_options.worker_token,
                            ReadTokenFile("--worker-token-file", options.worker_token_file));
  }

  Workers workers;
  workers.threads_per_worker = ThreadsPerWorker(options);
  const auto make_configs = [=, threads = workers.threads_per_worker](
                                Epoch epoch, const std::vector<std::string>& host_ids) {
    return MakeConfigs(options, model, max_model_len, threads, kv_bytes, epoch,
                       LocalRanks(host_ids));
  };
  TANDEM_ASSIGN_OR_RETURN(
      workers.supervisor,
      Supervisor::Start({.cluster = cluster_options,
                         .make_configs = make_configs,
                         .load_timeout = std::chrono::duration_cast<Duration>(
                             std::chrono::duration<double>(options.load_timeout_s))}));
  TANDEM_ASSIGN_OR_RETURN(ReadyWorkers ready, workers.supervisor->Bring(cancelled));
  workers.group = std::move(ready.group);
  workers.engine =
      MakeEngineConfig(options, model.spec, max_model_len, ready.epoch, ready.num_blocks);
  TANDEM_RETURN_IF_ERROR(workers.engine.Validate());
  return workers;
}

std::unique_ptr<EngineCore> Workers::MakeCore() {
  return std::make_unique<EngineCore>(engine, std::move(*std::exchange(group, nullptr)));
}

}  // namespace tandem::coordinator
