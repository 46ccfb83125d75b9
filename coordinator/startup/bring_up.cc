#include "coordinator/startup/bring_up.h"

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <limits>
#include <set>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/base/host.h"
#include "common/base/log.h"
#include "common/base/status.h"
#include "common/base/token_file.h"
#include "common/config/worker_cpus.h"
#include "common/kv/snapshot_interval.h"
#include "common/model/draft_model.h"
#include "common/step/limits.h"
#include "coordinator/startup/kv_budget.h"
#include "coordinator/startup/make_engine_config.h"
#include "coordinator/startup/token_budget.h"

namespace tandem::coordinator {
namespace {

// For workers to exit when the server is stopped before they are ready.
constexpr auto kCancelTimeout = std::chrono::seconds(2);

// The configured worker program, or the one for the device beside this program.
absl::StatusOr<std::string> WorkerBinary(const config::ServerConfig& config) {
  if (!config.cluster.worker_binary.empty()) return config.cluster.worker_binary;
  std::error_code error;
  const auto folder = std::filesystem::read_symlink("/proc/self/exe", error).parent_path();
  if (config.worker.device.device != config::Device::kCuda) {
    return (folder / "tandem_worker").string();
  }
  const auto binary = folder / "tandem_worker_cuda";
  if (std::filesystem::exists(binary, error)) return binary.string();
  return absl::UnavailableError(absl::StrCat(
      "--device cuda: there is no tandem_worker_cuda in ", folder.string(),
      ": it was built without the CUDA toolkit; build with it, or name one with --worker-binary"));
}

// The configuration completed from the model and this machine.
absl::StatusOr<config::WorkerConfig> Resolve(const config::ServerConfig& config,
                                             const ModelFile& model,
                                             const std::vector<CpuSet>& cpus) {
  config::WorkerConfig worker = config.worker;
  worker.model.path = model.path;
  if (model.draft != nullptr) worker.model.draft_path = model.draft->path;
  worker.model.lora_modules.clear();
  for (const AdapterFile& adapter : model.adapters) {
    worker.model.lora_modules.push_back(adapter.module);
  }
  uint32_t& max_model_len = worker.model.spec.max_model_len;
  if (max_model_len == 0) max_model_len = model.spec.context_length;
  if (max_model_len > model.spec.context_length) {
    return absl::InvalidArgumentError(absl::StrCat("--max-model-len ", max_model_len,
                                                   " exceeds the model's context length ",
                                                   model.spec.context_length));
  }
  if (model.draft != nullptr) {
    TANDEM_RETURN_IF_ERROR(
        Annotate(model::CheckDraftContext(model.draft->spec, max_model_len), model.draft->path));
  }
  if (uint32_t& tokens = worker.limits.max_num_batched_tokens; tokens == 0) {
    tokens = DefaultTokenBudget(worker, model.spec);
  }
  // Workers of other hosts have other cores, which they count themselves.
  const bool here = config.cluster.workers == config::WorkerSource::kSpawn;
  if (worker.device.threads == 0 && (here || !cpus.empty())) {
    worker.device.threads =
        config::DefaultThreads(cpus, static_cast<int32_t>(std::thread::hardware_concurrency()),
                               config.cluster.tensor_parallel_size);
  }
  TANDEM_ASSIGN_OR_RETURN(
      worker.cache.state_snapshot_interval,
      kv::SnapshotInterval(model.spec, worker.cache, config.scheduling.enable_prefix_caching));
  const config::Speculation speculation = config.scheduling.speculation;
  const bool workers_guess =
      speculation == config::Speculation::kDraft || speculation == config::Speculation::kMtp;
  if (const std::string reason = WhyNoDrafts(worker, config.scheduling, model.spec);
      workers_guess && !reason.empty()) {
    return absl::InvalidArgumentError(reason);
  }
  return worker;
}

// Of the files that ranks read.
struct Fingerprints {
  uint64_t model = 0;
  uint64_t draft = 0;
  uint64_t adapters = 0;
};

std::vector<config::WorkerAssignment> MakeAssignments(Epoch epoch, const Fingerprints& files,
                                                      const std::vector<uint64_t>& kv_bytes,
                                                      const std::vector<CpuSet>& cpus,
                                                      const std::vector<std::string>& host_ids) {
  const std::vector<int> local_ranks = LocalRanks(host_ids);
  const std::vector<int> ranks_on_hosts = RanksOnHosts(host_ids);
  std::vector<config::WorkerAssignment> ranks;
  for (size_t rank = 0; rank < kv_bytes.size(); ++rank) {
    ranks.push_back({.epoch = epoch,
                     .rank = static_cast<int32_t>(rank),
                     .size = static_cast<int32_t>(kv_bytes.size()),
                     .model_fingerprint = files.model,
                     .draft_fingerprint = files.draft,
                     .adapters_fingerprint = files.adapters,
                     .device_index = local_ranks[rank],
                     .ranks_on_host = ranks_on_hosts[rank],
                     .kv_cache_bytes = kv_bytes[rank],
                     .cpus = cpus.empty() ? CpuSet() : cpus[rank]});
  }
  return ranks;
}

ModelSizes SizesOf(const ModelFile& model) {
  ModelSizes sizes{.spec = model.spec, .bytes = model.stamps.TotalBytes()};
  if (model.draft != nullptr) {
    sizes.draft = &model.draft->spec;
    sizes.bytes += model.draft->stamps.TotalBytes();
  }
  for (const AdapterFile& one : model.adapters) sizes.adapters.push_back(one.adapter.get());
  return sizes;
}

void LogUsableLength(const Workers& workers) {
  const uint32_t asked = workers.engine.scheduler.max_model_len;
  if (workers.usable_model_len() == asked) return;
  TANDEM_LOG(kWarning) << "--max-model-len is " << asked << ", a sequence can use "
                       << workers.usable_model_len() << ": the cache has "
                       << workers.engine.kv_cache.Text()
                       << "; raise --kv-cache-memory or --num-kv-blocks, or lower --max-model-len"
                       << (workers.engine.kv_cache.snapshots.has_value()
                               ? ", or raise --state-snapshot-interval for fewer snapshots"
                               : "");
}

}  // namespace

std::vector<int> LocalRanks(const std::vector<std::string>& host_ids) {
  std::vector<int> local;
  for (auto rank = host_ids.begin(); rank != host_ids.end(); ++rank) {
    local.push_back(static_cast<int>(std::count(host_ids.begin(), rank, *rank)));
  }
  return local;
}

std::vector<int> RanksOnHosts(const std::vector<std::string>& host_ids) {
  std::vector<int> ranks;
  for (const std::string& host : host_ids) {
    ranks.push_back(static_cast<int>(std::count(host_ids.begin(), host_ids.end(), host)));
  }
  return ranks;
}

absl::StatusOr<Workers> BringUp(const config::ServerConfig& config, const ModelFile& model,
                                const std::function<bool()>& cancelled, BringUpObserver observer) {
  TANDEM_RETURN_IF_ERROR(config::Validate(config));
  Workers workers;
  workers.size = config.cluster.tensor_parallel_size;
  TANDEM_ASSIGN_OR_RETURN(const std::vector<CpuSet> cpus, config::WorkerCpus(config));
  TANDEM_ASSIGN_OR_RETURN(workers.config, Resolve(config, model, cpus));
  TANDEM_RETURN_IF_ERROR(step::StepLimits::Of(workers.config).CheckFrameBytes());
  const bool external = config.cluster.workers == config::WorkerSource::kExternal;
  // Steps that come by gRPC may go to other hosts, whose memory external workers check.
  const bool elsewhere =
      external && config.worker.transport.step_transport == config::StepTransport::kGrpc;
  const uint64_t host_bytes =
      elsewhere ? std::numeric_limits<uint64_t>::max() : AvailableMemoryBytes();
  TANDEM_ASSIGN_OR_RETURN(const std::vector<uint64_t> kv_bytes,
                          KvBytesPerRank(workers.config, config.cluster.tensor_parallel_size,
                                         SizesOf(model), host_bytes));
  // Before anything is loaded: all but the number of blocks is known.
  const std::vector<uint32_t> one_block(model.spec.kv_groups.size(), 1);
  TANDEM_RETURN_IF_ERROR(
      MakeEngineConfig(workers.config, config.scheduling, model.spec, Epoch{1}, one_block)
          .Validate());
  if (const std::string reason = WhyNoDrafts(workers.config, config.scheduling, model.spec);
      !reason.empty()) {
    TANDEM_LOG(kWarning) << reason;
  }
  ClusterOptions cluster_options{.size = config.cluster.tensor_parallel_size,
                                 .external = external,
                                 .worker_listen = config.cluster.worker_listen,
                                 .worker_tls = {.cert = config.cluster.worker_tls_cert,
                                                .key = config.cluster.worker_tls_key,
                                                .ca = config.cluster.worker_tls_ca},
                                 .worker_token = {},
                                 .worker_binary = {},
                                 .one_host = config::WorkersShareHost(config),
                                 .log_format = config.log_format};
  if (!external) {
    TANDEM_ASSIGN_OR_RETURN(cluster_options.worker_binary, WorkerBinary(config));
  }
  if (!config.cluster.worker_token_file.empty()) {
    TANDEM_ASSIGN_OR_RETURN(cluster_options.worker_token,
                            ReadTokenFile("--worker-token-file", config.cluster.worker_token_file));
  }

  const Fingerprints files{.model = model.fingerprint,
                           .draft = model.draft == nullptr ? 0 : model.draft->fingerprint,
                           .adapters = model.adapters_fingerprint};
  const auto assign = [files, kv_bytes, cpus](Epoch epoch,
                                              const std::vector<std::string>& host_ids) {
    const std::set<std::string> hosts(host_ids.begin(), host_ids.end());
    if (hosts.size() > 1) {
      TANDEM_LOG(kInfo) << "the ranks run on " << hosts.size() << " hosts";
    }
    return MakeAssignments(epoch, files, kv_bytes, cpus, host_ids);
  };
  TANDEM_ASSIGN_OR_RETURN(workers.supervisor,
                          Supervisor::Start({.cluster = cluster_options,
                                             .worker = workers.config,
                                             .assign = assign,
                                             .load_timeout = config.cluster.load_timeout,
                                             .max_restarts = config.cluster.max_restarts,
                                             .restart_window = config.cluster.restart_window,
                                             .on_progress = std::move(observer.on_progress),
                                             .rank_times = observer.rank_times,
                                             .trace = observer.trace}));
  absl::StatusOr<ReadyWorkers> ready = workers.supervisor->Bring(cancelled);
  if (absl::IsCancelled(ready.status())) {
    workers.supervisor->Shutdown(absl::OkStatus(), Deadline::After(kCancelTimeout));
  }
  TANDEM_RETURN_IF_ERROR(ready.status());
  workers.group = std::move(ready->group);
  workers.engine = MakeEngineConfig(workers.config, config.scheduling, model.spec, ready->epoch,
                                    ready->num_blocks);
  TANDEM_RETURN_IF_ERROR(workers.engine.Validate());
  LogUsableLength(workers);
  return workers;
}

uint32_t Workers::usable_model_len() const {
  const uint64_t longest = engine.kv_cache.LongestSequence(engine.scheduler.MostStepTokens());
  return static_cast<uint32_t>(std::min<uint64_t>(engine.scheduler.max_model_len, longest));
}

std::unique_ptr<EngineCore> Workers::MakeCore() {
  return std::make_unique<EngineCore>(engine, std::move(*std::exchange(group, nullptr)));
}

}  // namespace tandem::coordinator
