// RankAdapters: one rank's slices of the loaded adapters, placed on its backend as F32 matrices.
//
// Immutable once loaded; kept and dropped with the rank's weights. Movable.
#ifndef TANDEM_WORKER_MODEL_RANK_ADAPTERS_H_
#define TANDEM_WORKER_MODEL_RANK_ADAPTERS_H_

#include <cstdint>
#include <map>
#include <span>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "common/model/adapter.h"
#include "common/model/shard.h"
#include "common/model/spec.h"
#include "kernels/backend.h"
#include "worker/layers/linear.h"

namespace tandem::worker {

class RankAdapters {
 public:
  RankAdapters() = default;  // none
  // Shapes without data on any backend.
  static RankAdapters Describe(const std::vector<model::Adapter>& adapters,
                               const model::ModelSpec& spec, const model::ShardPlan& plan);
  static absl::StatusOr<RankAdapters> Load(const std::vector<model::Adapter>& adapters,
                                           const model::ModelSpec& spec,
                                           const model::ShardPlan& plan, kernels::Backend& backend);

  // By the number of the adapter; empty if none changes the matrix. Valid as long as this is.
  std::span<const LowRank> Of(model::Role role, int layer) const;
  uint32_t count() const { return count_; }
  // Where `backend` has them, or will have them.
  uint64_t PlacedBytes(const kernels::Backend& backend) const;

 private:
  explicit RankAdapters(size_t count) : count_(static_cast<uint32_t>(count)) {}
  LowRank& At(const model::AdaptedMatrix& matrix, size_t adapter);

  uint32_t count_ = 0;
  std::map<std::pair<model::Role, int>, std::vector<LowRank>> changes_;
  std::vector<std::vector<float>> values_;  // where weights stay in host memory
};

}  // namespace tandem::worker

#endif  // TANDEM_WORKER_MODEL_RANK_ADAPTERS_H_
