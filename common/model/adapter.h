// Adapter: a low-rank change of a model's matrices (LoRA, Hu et al., 2021, arXiv:2106.09685): y =
// W x becomes y = W x + s B (A x), where A has r rows, B has r columns and s = alpha / r.
//
// Files are llama.cpp's: general.type "adapter", adapter.type "lora", and for each matrix that it
// changes the tensors "blk.3.attn_q.weight.lora_a" and "...lora_b". Those of attention and of dense
// feed-forward blocks can be changed.
#ifndef TANDEM_COMMON_MODEL_ADAPTER_H_
#define TANDEM_COMMON_MODEL_ADAPTER_H_

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "common/gguf/file.h"
#include "common/gguf/tensor_info.h"
#include "common/model/shard.h"
#include "common/model/slices.h"
#include "common/model/spec.h"
#include "common/model/tensor_row.h"
#include "common/model/weights.h"

namespace tandem::model {

inline constexpr uint32_t kMaxAdapterRank = 1024;

// The change of one of the model's matrices, which may be a part of a tensor.
struct AdaptedMatrix {
  const TensorRow* row = nullptr;  // of the architecture's table
  uint32_t layer = 0;
  const gguf::TensorInfo* a = nullptr;  // [columns of the model's tensor, rank]
  const gguf::TensorInfo* b = nullptr;  // [rank, rows of the model's tensor]
  float scale = 0;

  Role role() const { return row->role; }
  uint32_t rank() const { return static_cast<uint32_t>(a->dims[1]); }
};

// Movable. Thread-safe: never changes.
struct Adapter {
  gguf::File file;
  std::vector<AdaptedMatrix> matrices;  // what they point to is `file`'s
};

// INVALID_ARGUMENT for a file that is no adapter or not of this model, with both values;
// UNIMPLEMENTED, naming the tensor, if it changes what can't be changed.
absl::StatusOr<Adapter> ReadAdapter(gguf::File file, const ModelSpec& spec);

// The same from its path, which errors do not carry.
absl::StatusOr<Adapter> OpenAdapter(const std::string& path, const ModelSpec& spec);

// One rank's part of a change, as floats: the columns of A, the rows of B, that its part of the
// matrix has.
struct AdapterSlice {
  uint32_t rank = 0;
  uint32_t cols = 0;       // of the rank's inputs
  uint32_t rows = 0;       // of the rank's outputs
  std::vector<float> a{};  // (rank, cols)
  std::vector<float> b{};  // (rows, rank), times the scale
};

// The shape alone; what the rank has.
AdapterSlice DescribeSlice(const AdaptedMatrix& matrix, const ModelSpec& spec,
                           const ShardPlan& plan);
// With the values.
AdapterSlice ReadSlice(const AdaptedMatrix& matrix, const ModelSpec& spec, const ShardPlan& plan);

// About what a rank's worker keeps of it: floats, in whole panels.
uint64_t AdapterBytes(const Adapter& adapter, const ModelSpec& spec, const ShardPlan& plan);

}  // namespace tandem::model

#endif  // TANDEM_COMMON_MODEL_ADAPTER_H_
