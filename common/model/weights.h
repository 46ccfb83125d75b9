// The weights of one rank as views into the mapped GGUF file: nothing is copied or requantised
// here.
//
// Roles, not names: the architecture's tensor table maps file names ("blk.{L}.attn_q.weight") to
// roles and says how each is cut (rows for column-parallel, columns for row-parallel, vocabulary
// rows, or replicated).
#ifndef TANDEM_COMMON_MODEL_WEIGHTS_H_
#define TANDEM_COMMON_MODEL_WEIGHTS_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "common/tensor/type.h"

namespace tandem::model {

enum class Role {
  kTokenEmbedding,  // [vocab, hidden], vocabulary rows
  kOutputNorm,      // [hidden]
  kOutput,          // [vocab, hidden], vocabulary rows
  kAttnNorm,        // [hidden]
  kAttnQ,           // [heads * head_dim, hidden], whole heads
  kAttnK,           // [kv_heads * head_dim, hidden], whole heads
  kAttnV,           // [kv_heads * value_dim, hidden], whole heads
  kAttnQBias,
  kAttnKBias,
  kAttnVBias,
  kAttnQNorm,       // [head_dim]
  kAttnKNorm,       // [head_dim]
  kAttnOutput,      // [hidden, heads * value_dim], row-parallel
  kAttnOutputBias,  // [hidden], replicated; added once, by rank 0
  kFfnNorm,         // [hidden]
  kFfnGate,         // [ffn, hidden], columns-parallel
  kFfnUp,           // [ffn, hidden]
  kFfnDown,         // [hidden, ffn], row-parallel
  kRopeFactors,     // [rotary_dims / 2]; folded into RopeSpec, never loaded by a worker
};

// A two-dimensional slice of one tensor in the mapped file: `rows` rows of `cols` values,
// `row_stride_bytes` apart. For a row-parallel slice, whole quantised blocks are kept: `cols`
// covers the blocks that the rank's columns touch, and the rank's own columns are [col_begin,
// col_begin + col_count) of them. Otherwise col_begin is 0 and col_count is cols.
struct WeightSlice {
  Role role{};
  int layer = -1;  // -1: not of a layer
  tensor::Type type = tensor::Type::kF32;
  const std::byte* data = nullptr;  // first row's first kept block
  uint64_t rows = 0;                // 1 for vectors
  uint64_t cols = 0;
  uint64_t row_stride_bytes = 0;
  uint64_t col_begin = 0;
  uint64_t col_count = 0;
  std::string name;  // the file's, for messages

  uint64_t bytes() const { return rows * tensor::RowBytes(type, cols); }
};

}  // namespace tandem::model

#endif  // TANDEM_COMMON_MODEL_WEIGHTS_H_
