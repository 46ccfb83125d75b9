#include "coordinator/server/options.h"

#include <CLI/CLI.hpp>
#include <cmath>
#include <initializer_list>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/base/status.h"
#include "common/model/kv_cache_type.h"

namespace tandem::coordinator {
namespace {

absl::Status OneOf(const char* flag, const std::string& found,
                   std::initializer_list<const char*> allowed) {
  for (const char* name : allowed) {
    if (found == name) return absl::OkStatus();
  }
  return absl::InvalidArgumentError(
      absl::StrCat(flag, " is '", found, "', it must be one of ", absl::StrJoin(allowed, ", ")));
}

absl::Status Between(const char* flag, double found, double least, double most) {
  if (found >= least && found <= most) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat(flag, " is ", found, ", it must be from ", least, " to ", most));
}

void AddLimitFlags(CLI::App& app, WorkerOptions& o) {
  app.add_option("--max-num-seqs", o.max_num_seqs, "sequences that run at once")
      ->capture_default_str();
  app.add_option("--max-num-batched-tokens", o.max_num_batched_tokens,
                 "tokens of one step, prefill chunks and decodes together")
      ->capture_default_str();
  app.add_option("--chunked-prefill-size", o.chunked_prefill_size,
                 "most prefill tokens of one sequence in a step (0: --max-num-batched-tokens)")
      ->capture_default_str();
  app.add_option("--max-model-len", o.max_model_len,
                 "prompt and generated tokens of a sequence (0: the model's context length)")
      ->capture_default_str();
  app.add_option("--max-queued-requests", o.max_queued_requests,
                 "requests that may wait; more are refused")
      ->capture_default_str();
  app.add_option("--scheduling-policy", o.scheduling_policy, "decode-first or prefill-first")
      ->capture_default_str();
}

void AddCacheFlags(CLI::App& app, WorkerOptions& o) {
  app.add_option("--block-size", o.block_size, "tokens of a KV block")->capture_default_str();
  app.add_option("--num-kv-blocks", o.num_kv_blocks, "KV blocks (0: by --kv-cache-memory)")
      ->capture_default_str();
  app.add_option("--kv-cache-memory", o.kv_cache_memory,
                 "KV memory of all ranks together, such as 512MiB or 2GiB (auto, cpu: what "
                 "--max-num-seqs x --max-model-len needs, at most 4GiB and what is free; auto, "
                 "cuda: by --gpu-memory-utilization)")
      ->capture_default_str();
  app.add_option("--kv-cache-type", o.kv_cache_type, "f32, f16, bf16 or q8_0")
      ->capture_default_str();
  app.add_flag("--enable-prefix-caching,!--no-enable-prefix-caching", o.enable_prefix_caching,
               "reuse the KV blocks of equal prompt beginnings (on by default)");
}

void AddDeviceFlags(CLI::App& app, WorkerOptions& o) {
  app.add_option("--device", o.device, "cpu, or cuda: one GPU per worker")->capture_default_str();
  app.add_option("--gpu-memory-utilization", o.gpu_memory_utilization,
                 "part of each GPU's memory that is used; what the model leaves of it is KV cache")
      ->capture_default_str();
  app.add_flag("--enforce-eager", o.enforce_eager, "no CUDA graphs: every decode step is encoded");
  app.add_flag("--strict,!--no-strict", o.strict,
               "a call that blocks a worker between encoding a step and waiting for it fails the "
               "step (on by default); without, it is logged");
}

void AddProcessFlags(CLI::App& app, WorkerOptions& o) {
  app.add_option("--workers", o.workers, "spawn: start them here; external: wait for them")
      ->capture_default_str();
  app.add_option("--worker-listen", o.worker_listen,
                 "HOST:PORT where external workers dial in (loopback only)")
      ->capture_default_str();
  app.add_option("--worker-token-file", o.worker_token_file,
                 "file with the token that external workers must show");
  app.add_option("--worker-binary", o.worker_binary,
                 "path of the worker program (default: tandem_worker, or tandem_worker_cuda, "
                 "beside this program)");
  app.add_option("--step-transport", o.step_transport, "shm or grpc")->capture_default_str();
  app.add_option("--step-timeout", o.step_timeout_s, "seconds that a step may take")
      ->capture_default_str();
  app.add_option("--load-timeout", o.load_timeout_s, "seconds that connecting and loading may take")
      ->capture_default_str();
}

}  // namespace

void AddWorkerFlags(CLI::App& app, WorkerOptions& o) {
  app.add_option("--model,-m", o.model, "GGUF file")->required();
  AddDeviceFlags(app, o);
  app.add_option("--cpu-kernels", o.cpu_kernels, "auto, reference, avx2 or avx512")
      ->capture_default_str();
  app.add_option("--tensor-parallel-size,--tp", o.tensor_parallel_size,
                 "worker processes that share the model; divides the query heads")
      ->capture_default_str();
  app.add_option("--threads-per-worker", o.threads_per_worker, "0: cores / ranks")
      ->capture_default_str();
  app.add_flag("--expert-parallel", o.expert_parallel,
               "give ranks whole experts instead of columns of every expert");
  app.add_option("--rope-scaling", o.rope_scaling,
                 "none, linear, ntk or yarn instead of what the file says");
  app.add_option("--rope-scale", o.rope_scale,
                 "how much farther positions reach, instead of what the file says");
  AddLimitFlags(app, o);
  AddCacheFlags(app, o);
  AddProcessFlags(app, o);
}

void AddServerFlags(CLI::App& app, ServerOptions& options) {
  AddWorkerFlags(app, options.worker);
  app.add_option("--listen", options.listen, "HOST:PORT of the public gRPC API; port 0: any free")
      ->capture_default_str();
}

absl::Status Validate(const WorkerOptions& o) {
  TANDEM_RETURN_IF_ERROR(OneOf("--device", o.device, {"cpu", "cuda"}));
  TANDEM_RETURN_IF_ERROR(Between("--gpu-memory-utilization", o.gpu_memory_utilization, 0.01, 1.0));
  TANDEM_RETURN_IF_ERROR(
      OneOf("--cpu-kernels", o.cpu_kernels, {"auto", "reference", "avx2", "avx512"}));
  TANDEM_RETURN_IF_ERROR(model::ParseKvCacheType(o.kv_cache_type).status());
  TANDEM_RETURN_IF_ERROR(OneOf("--step-transport", o.step_transport, {"shm", "grpc"}));
  TANDEM_RETURN_IF_ERROR(
      OneOf("--scheduling-policy", o.scheduling_policy, {"decode-first", "prefill-first"}));
  TANDEM_RETURN_IF_ERROR(OneOf("--workers", o.workers, {"spawn", "external"}));
  TANDEM_RETURN_IF_ERROR(Between("--tensor-parallel-size", o.tensor_parallel_size, 1, 64));
  TANDEM_RETURN_IF_ERROR(Between("--threads-per-worker", o.threads_per_worker, 0, 1024));
  TANDEM_RETURN_IF_ERROR(Between("--max-num-seqs", o.max_num_seqs, 1, 4096));
  TANDEM_RETURN_IF_ERROR(Between("--max-num-batched-tokens", o.max_num_batched_tokens, 1, 1 << 20));
  TANDEM_RETURN_IF_ERROR(Between("--block-size", o.block_size, 1, 4096));
  TANDEM_RETURN_IF_ERROR(Between("--max-queued-requests", o.max_queued_requests, 1, 1 << 20));
  TANDEM_RETURN_IF_ERROR(Between("--step-timeout", o.step_timeout_s, 0.1, 86400));
  TANDEM_RETURN_IF_ERROR(Between("--load-timeout", o.load_timeout_s, 0.1, 86400));
  if (o.max_num_batched_tokens < o.max_num_seqs) {
    return absl::InvalidArgumentError(absl::StrCat(
        "--max-num-batched-tokens ", o.max_num_batched_tokens, " is below --max-num-seqs ",
        o.max_num_seqs, ": every running sequence needs a token of each step"));
  }
  if (o.workers == "external" && o.worker_token_file.empty()) {
    return absl::InvalidArgumentError("--workers external needs --worker-token-file");
  }
  return absl::OkStatus();
}

}  // namespace tandem::coordinator
