// LoadedModel: a GGUF file opened, understood, cut for one rank and placed on a backend, with the
// decoder that runs it.
//
// Lives as long as the worker keeps its rank and size; epochs come and go above it (ModelRunner).
#ifndef TANDEM_WORKER_MODEL_LOADED_MODEL_H_
#define TANDEM_WORKER_MODEL_LOADED_MODEL_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "common/gguf/file.h"
#include "common/model/build_spec.h"
#include "common/model/shard.h"
#include "common/model/spec.h"
#include "kernels/backend.h"
#include "kernels/factory.h"
#include "worker/model/decoder.h"
#include "worker/model/rank_weights.h"

namespace tandem::worker {

struct LoadOptions {
  std::string path;
  uint64_t fingerprint = 0;  // of the file that the coordinator read; 0: not compared
  int rank = 0;
  int size = 1;
  bool expert_parallel = false;
  model::SpecOptions spec{};
  kernels::BackendOptions backend;
  bool operator==(const LoadOptions&) const = default;
};

class LoadedModel {
 public:
  // Asked before weights are loaded, with a model that has shapes alone (RankWeights::Describe); an
  // error ends the load.
  using FitCheck = std::function<absl::Status(LoadedModel& described)>;

  // FAILED_PRECONDITION with both fingerprints when this host's file is another one.
  static absl::StatusOr<std::unique_ptr<LoadedModel>> Load(const LoadOptions& options,
                                                           const LoadProgress& progress,
                                                           const FitCheck& fits = nullptr);

  const model::ModelSpec& spec() const { return spec_; }
  const model::ShardPlan& plan() const { return plan_; }
  const Decoder& decoder() const { return *decoder_; }
  kernels::Backend& backend() { return *backend_; }
  uint64_t weight_bytes() const { return weights_->bytes(); }
  // As it was before weights were loaded; nothing where the backend computes in host memory.
  const std::optional<kernels::DeviceMemory>& device_memory() const { return device_memory_; }

 private:
  explicit LoadedModel(gguf::File file) : file_(std::move(file)) {}
  absl::StatusOr<kernels::Buffer> PlaceFloats(const std::vector<float>& host);
  absl::Status PlaceRope();
  absl::Status MakeDecoder(int size);

  gguf::File file_;
  model::ModelSpec spec_;
  model::ShardPlan plan_;
  std::unique_ptr<kernels::Backend> backend_;
  std::optional<kernels::DeviceMemory> device_memory_;
  std::unique_ptr<RankWeights> weights_;
  kernels::Buffer inv_freq_;
  kernels::Buffer window_inv_freq_;
  std::unique_ptr<Decoder> decoder_;
};

}  // namespace tandem::worker

#endif  // TANDEM_WORKER_MODEL_LOADED_MODEL_H_
