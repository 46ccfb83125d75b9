#include "worker/life/configure_codec.h"

#include "absl/strings/str_cat.h"
#include "common/model/kv_cache_type.h"
#include "proto/tandem/v1/worker.pb.h"

namespace tandem::worker {
namespace {

absl::StatusOr<model::SpecOptions> SpecOptionsOf(const v1::Configure& message) {
  return model::MakeSpecOptions(message.max_model_len(), message.rope_scaling(),
                                message.rope_scale());
}

absl::Status Check(const v1::Configure& message) {
  if (message.size() < 1 || message.rank() < 0 || message.rank() >= message.size()) {
    return absl::InvalidArgumentError(
        absl::StrCat("rank ", message.rank(), " of ", message.size(), " ranks"));
  }
  if (message.threads() < 1) {
    return absl::InvalidArgumentError(absl::StrCat("threads ", message.threads()));
  }
  if (message.device_index() < 0) {
    return absl::InvalidArgumentError(absl::StrCat("device index ", message.device_index()));
  }
  // Written so that NaN fails.
  if (!(message.gpu_memory_utilization() > 0 && message.gpu_memory_utilization() <= 1)) {
    return absl::InvalidArgumentError(absl::StrCat(
        "GPU memory utilization ", message.gpu_memory_utilization(), " is not in (0, 1]"));
  }
  if (message.step_transport() != "shm" && message.step_transport() != "grpc") {
    return absl::InvalidArgumentError(
        absl::StrCat("step transport '", message.step_transport(), "' is not shm or grpc"));
  }
  if (message.step_timeout_ms() <= 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("step timeout of ", message.step_timeout_ms(), " ms"));
  }
  if (absl::Status status = SpecOptionsOf(message).status(); !status.ok()) return status;
  return model::ParseKvCacheType(message.kv_cache_type()).status();
}

}  // namespace

ConfigureCommand FromProto(const v1::Configure& message) {
  ConfigureCommand command;
  command.epoch = Epoch{message.epoch()};
  command.invalid = Check(message);
  if (!command.invalid.ok()) return command;
  command.rank = message.rank();
  command.size = message.size();
  command.expert_parallel = message.expert_parallel();
  command.spec = *SpecOptionsOf(message);
  command.model_path = message.model_path();
  command.model_fingerprint = message.model_fingerprint();
  command.backend = {.device = message.device(),
                     .cpu_kernels = message.cpu_kernels(),
                     .threads = message.threads(),
                     .device_index = message.device_index()};
  command.runner = {.kv_cache_type = *model::ParseKvCacheType(message.kv_cache_type()),
                    .block_size = message.block_size(),
                    .max_num_seqs = message.max_num_seqs(),
                    .max_num_batched_tokens = message.max_num_batched_tokens(),
                    .max_model_len = message.max_model_len(),
                    .kv_cache_bytes = message.kv_cache_bytes(),
                    .num_kv_blocks = message.num_kv_blocks(),
                    .gpu_memory_utilization = message.gpu_memory_utilization(),
                    .max_result_bytes = message.max_result_bytes(),
                    .enforce_eager = message.enforce_eager(),
                    .strict = message.strict()};
  command.step_transport = message.step_transport();
  command.step_channel_address = message.step_channel_address();
  command.step_timeout_ms = message.step_timeout_ms();
  return command;
}

}  // namespace tandem::worker
