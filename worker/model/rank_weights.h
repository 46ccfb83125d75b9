// RankWeights: one rank's slice of a model's weights, placed on its backend.
//
// Matrices are placed in the file's format; vectors (norms, biases) become F32 in one buffer. On
// the CPU matrices are read from the mapping and never copied, except those whose rows or columns
// are scattered over their tensor. A device has copies, and the
// mapping's pages are released during copying: the host holds a few megabytes at a time. Immutable
// once loaded; outlives epochs: a reconfigured worker keeps it.
#ifndef TANDEM_WORKER_MODEL_RANK_WEIGHTS_H_
#define TANDEM_WORKER_MODEL_RANK_WEIGHTS_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "common/gguf/file.h"
#include "common/model/shard.h"
#include "common/model/spec.h"
#include "common/model/weights.h"
#include "kernels/backend.h"

namespace tandem::worker {

// Bytes loaded so far, and in total.
using LoadProgress = std::function<void(uint64_t done_bytes, uint64_t total_bytes)>;

class RankWeights {
 public:
  // Shapes and types of the rank's matrices, without data on any backend: enough to plan a step's
  // memory. Vectors are omitted.
  static absl::StatusOr<std::unique_ptr<RankWeights>> Describe(const gguf::File& file,
                                                               const model::ModelSpec& spec,
                                                               const model::ShardPlan& plan);
  // Places every slice of `plan`. UNIMPLEMENTED naming tensor and type if the backend does not
  // support it. `file` must outlive the result.
  static absl::StatusOr<std::unique_ptr<RankWeights>> Load(const gguf::File& file,
                                                           const model::ModelSpec& spec,
                                                           const model::ShardPlan& plan,
                                                           kernels::Backend& backend,
                                                           const LoadProgress& progress);

  // The placed matrix of a role. REQUIRES: Has(role, layer).
  const kernels::Weight& Matrix(model::Role role, int layer = -1) const;
  // The F32 values of a vector role (of all its experts), or null if the file has none.
  const float* Vector(model::Role role, int layer = -1) const;
  // Ones, as many as the largest head has values: the weight of a norm that has none. Null as
  // Vector's are, and if the model has no such norm.
  const float* ones() const { return ones_; }
  bool Has(model::Role role, int layer = -1) const;
  // In the file.
  uint64_t bytes() const { return bytes_; }
  // Where `backend` has them, or will have them.
  uint64_t PlacedBytes(const kernels::Backend& backend) const;

 private:
  struct Entry {
    kernels::Weight matrix;
    const float* vector = nullptr;
    bool present = false;
  };

  explicit RankWeights(uint32_t layers);
  Entry& At(model::Role role, int layer);
  const Entry& At(model::Role role, int layer) const;
  absl::Status PlaceVectors(const std::vector<model::WeightSlice>& slices, uint32_t num_ones,
                            kernels::Backend& backend);

  std::vector<Entry> entries_;  // [layer + 1][role]
  kernels::Buffer vectors_;
  const float* ones_ = nullptr;  // in vectors_
  std::vector<std::unique_ptr<std::byte[]>>
      gathered_;  // scattered slices, where weights stay in host memory
  // Of matrices (Weight::scales).
  std::vector<std::vector<float>> scales_;
  uint64_t bytes_ = 0;
  uint64_t vector_bytes_ = 0;  // of them
};

}  // namespace tandem::worker

#endif  // TANDEM_WORKER_MODEL_RANK_WEIGHTS_H_
