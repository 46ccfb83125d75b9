// DescribedModel: a GGUF file opened, checked and sharded for one rank, with the backend that will
// hold it. Weights are shapes only: enough to plan memory before loading.
#ifndef TANDEM_WORKER_MODEL_DESCRIBED_MODEL_H_
#define TANDEM_WORKER_MODEL_DESCRIBED_MODEL_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "absl/status/statusor.h"
#include "common/config/worker_assignment.h"
#include "common/config/worker_config.h"
#include "common/gguf/file.h"
#include "common/model/adapter.h"
#include "common/model/shard.h"
#include "common/model/spec.h"
#include "kernels/backend.h"
#include "worker/model/rank_adapters.h"
#include "worker/model/rank_weights.h"

namespace tandem::worker {

struct LoadOptions {
  config::WorkerConfig config{};
  config::WorkerAssignment assignment{};
};

struct DescribedModel {
  gguf::File file;
  model::ModelSpec spec{};
  model::ShardPlan plan{};
  std::vector<uint32_t>
      vocab_starts{};  // of every rank's vocabulary slice, and the end of the last
  tensor::Type activation_type = tensor::Type::kF32;
  // Computes with such activations; of the draft model too.
  std::shared_ptr<kernels::Backend> backend{};
  // Before weights are loaded; none if the backend computes in host memory.
  std::optional<kernels::DeviceMemory> device_memory{};
  std::unique_ptr<RankWeights> shapes{};   // RankWeights::Describe
  std::vector<model::Adapter> adapters{};  // in the order of --lora-modules
  RankAdapters adapter_shapes{};
  std::unique_ptr<DescribedModel> draft{};  // its draft model; null: none is asked for
};

// FAILED_PRECONDITION with both fingerprints if this host's file differs; errors of the file, the
// spec, the shard plan, CheckDraftModel and MakeBackend. All of the draft model's and of adapters
// carry their path.
absl::StatusOr<std::unique_ptr<DescribedModel>> DescribeModel(const LoadOptions& options);

}  // namespace tandem::worker

#endif  // TANDEM_WORKER_MODEL_DESCRIBED_MODEL_H_
