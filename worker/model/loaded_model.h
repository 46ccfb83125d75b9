// LoadedModel: a described model with its weights placed on the backend, and the decoder and draft
// head that run it, and with its draft model.
//
// Kept as long as the worker's rank and size; epochs (ModelRunner) may change.
#ifndef TANDEM_WORKER_MODEL_LOADED_MODEL_H_
#define TANDEM_WORKER_MODEL_LOADED_MODEL_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "absl/status/statusor.h"
#include "common/model/shard.h"
#include "common/model/spec.h"
#include "kernels/backend.h"
#include "worker/model/decoder.h"
#include "worker/model/described_model.h"
#include "worker/model/draft_head.h"
#include "worker/model/rank_adapters.h"
#include "worker/model/rank_weights.h"

namespace tandem::worker {

class LoadedModel {
 public:
  const model::ModelSpec& spec() const { return described_->spec; }
  const model::ShardPlan& plan() const { return described_->plan; }
  const Decoder& decoder() const { return *decoder_; }
  // Null unless it was asked for.
  const DraftHead* draft_head() const { return draft_head_.has_value() ? &*draft_head_ : nullptr; }
  // The draft model, on the same backend; null unless it was asked for.
  const LoadedModel* draft() const { return draft_.get(); }
  kernels::Backend& backend() { return *described_->backend; }
  tensor::Type activation_type() const { return described_->activation_type; }
  const RankAdapters& adapters() const { return adapters_; }
  // The draft model's included: in the file; and, with adapters, where the backend has them.
  uint64_t weight_bytes() const {
    return weights_->bytes() + (draft_ == nullptr ? 0 : draft_->weight_bytes());
  }
  uint64_t placed_weight_bytes() const {
    return weights_->PlacedBytes(*described_->backend) +
           adapters_.PlacedBytes(*described_->backend) +
           (draft_ == nullptr ? 0 : draft_->placed_weight_bytes());
  }
  // Before weights were loaded; none if the backend computes in host memory.
  const std::optional<kernels::DeviceMemory>& device_memory() const {
    return described_->device_memory;
  }

 private:
  friend absl::StatusOr<std::unique_ptr<LoadedModel>> LoadWeights(
      std::unique_ptr<DescribedModel> described, const LoadProgress& progress);

  explicit LoadedModel(std::unique_ptr<DescribedModel> described);
  absl::StatusOr<kernels::Buffer> PlaceFloats(const std::vector<float>& host);
  absl::Status PlaceRope();

  const std::unique_ptr<DescribedModel> described_;
  std::unique_ptr<RankWeights> weights_;
  RankAdapters adapters_;
  kernels::Buffer inv_freq_;
  kernels::Buffer window_inv_freq_;
  std::unique_ptr<Decoder> decoder_;
  std::optional<DraftHead> draft_head_;
  std::unique_ptr<LoadedModel> draft_;
};

// With the draft model's; `progress` is of both. UNIMPLEMENTED naming tensor and type if the
// backend does not support it; errors of memory.
absl::StatusOr<std::unique_ptr<LoadedModel>> LoadWeights(std::unique_ptr<DescribedModel> described,
                                                         const LoadProgress& progress);

}  // namespace tandem::worker

#endif  // TANDEM_WORKER_MODEL_LOADED_MODEL_H_
