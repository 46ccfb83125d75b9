// The weight iterator: visits the slices that one rank loads.
#ifndef TANDEM_COMMON_MODEL_SLICES_H_
#define TANDEM_COMMON_MODEL_SLICES_H_

#include <cstdint>
#include <functional>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/gguf/file.h"
#include "common/model/architecture.h"
#include "common/model/shard.h"
#include "common/model/spec.h"
#include "common/model/tensor_row.h"
#include "common/model/weights.h"

namespace tandem::model {

// Calls `visit` for every slice of the rank: first the tensors that belong to no layer, then layer
// by layer, the draft head last. Rope factors are skipped (already in the spec), and so is the
// output matrix of a model with tied embeddings. Stops at the first status that is not OK and
// returns it. INVALID_ARGUMENT if `spec` was not built from `file`.
absl::Status ForEachSlice(const gguf::File& file, const ModelSpec& spec, const ShardPlan& plan,
                          const std::function<absl::Status(const WeightSlice&)>& visit);

// A rank's rows and columns of the tensor that holds a row of the architecture's table, as they lie
// in that tensor.
struct TensorPart {
  using Runs = std::vector<WeightSlice::Run>;
  Placement tensor;
  Runs rows;
  Runs cols;

  // Rows or columns of all runs.
  static uint64_t Count(const Runs& runs);
};
TensorPart PartOfTensor(const Architecture& architecture, const TensorRow& row, int layer,
                        const ModelSpec& spec, const ShardPlan& plan);

// One rank's part of one row of the architecture's table, without scales. REQUIRES: the tensor has
// the shape of Place().
WeightSlice SliceTensor(const gguf::TensorInfo& tensor, const Architecture& architecture,
                        const TensorRow& row, int layer, const ModelSpec& spec,
                        const ShardPlan& plan);

// Bytes of all slices of the rank.
absl::StatusOr<uint64_t> WeightBytes(const gguf::File& file, const ModelSpec& spec,
                                     const ShardPlan& plan);

}  // namespace tandem::model

#endif  // TANDEM_COMMON_MODEL_SLICES_H_
