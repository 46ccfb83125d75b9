// The weights of one rank as views into the mapped GGUF file: nothing is copied or requantised
// here.
//
// Roles, not names: the architecture's tensor table maps file names ("blk.{L}.attn_q.weight") to
// roles and gives their shard rules (rows for column-parallel, columns for row-parallel, vocabulary
// rows, or replicated).
#ifndef TANDEM_COMMON_MODEL_WEIGHTS_H_
#define TANDEM_COMMON_MODEL_WEIGHTS_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "common/tensor/type.h"

namespace tandem::model {

// Matrices first, then elementwise parameters, in F32.
enum class Role {
  kTokenEmbedding,     // [vocab, hidden], vocabulary rows
  kPositionEmbedding,  // [context, hidden], replicated
  kOutput,             // [vocab, hidden], vocabulary rows
  kAttnQ,              // [heads * head_dim, hidden], whole heads
  kAttnK,              // [kv_heads * head_dim, hidden], whole heads
  kAttnV,              // [kv_heads * value_dim, hidden], whole heads
  kAttnOutput,         // [hidden, heads * value_dim], row-parallel
  kAttnGate,           // [heads * head_dim, hidden], whole heads: gate of the attention's output
  // delta net: whole key heads, each with its value heads
  kDeltaQ,      // [key_heads * head_dim, hidden]
  kDeltaK,      // [key_heads * head_dim, hidden]
  kDeltaV,      // [value_heads * head_dim, hidden]
  kDeltaGate,   // [value_heads * head_dim, hidden]
  kDeltaDecay,  // [value_heads, hidden]
  kDeltaWrite,  // [value_heads, hidden]
  kDeltaOut,    // [hidden, value_heads * head_dim], row-parallel
  // MLA
  kQueryDown,      // [q_rank, hidden], replicated
  kQueryUp,        // [heads * (nope + rope), q_rank], whole heads
  kLatentDown,     // [kv_rank, hidden], replicated
  kLatentKeyRope,  // [rope, hidden], replicated
  kLatentUp,       // [heads * (nope + value), kv_rank], whole heads: of each K's rows, then V's
  kLatentKeyUp,    // [heads * kv_rank, nope], whole heads: W_UK transposed (kv_b_proj)
  kLatentValueUp,  // [heads * value, kv_rank], whole heads
  kFfnGate,        // [ffn, hidden], column-parallel
  kFfnUp,          // [ffn, hidden]
  kFfnDown,        // [hidden, ffn], row-parallel
  // per-layer embeddings, replicated; P values per layer
  kLayerEmbedding,        // [vocab, layers * P]
  kLayerInputProjection,  // [layers * P, hidden]
  kLayerInputGate,        // [P, hidden]
  kLayerInputOut,         // [hidden, P]
  // mixtures: a matrix per expert, sharded like the FFN's or whole
  kRouter,  // [experts, hidden], replicated
  kExpertGate,
  kExpertUp,
  kExpertDown,
  kSharedGate,  // of the shared experts: like the FFN's
  kSharedUp,
  kSharedDown,
  kSharedWeight,  // [1, hidden], replicated: gate of the shared experts
  // draft head
  kDraftEmbedding,   // [vocab, hidden], vocabulary rows
  kDraftProjection,  // [hidden, 2 * hidden], replicated: of an embedding and a hidden state
  kDraftOutput,      // [vocab, hidden], vocabulary rows

  kFirstVector,
  kOutputNorm = kFirstVector,  // norms: [hidden]
  kOutputNormBias,
  kAttnNorm,
  kAttnNormBias,
  kAttnPostNorm,
  kFfnNorm,
  kFfnNormBias,
  kFfnPostNorm,
  kDensePostNorm,   // of a dense FFN beside experts
  kExpertNorm,      // of experts beside a dense FFN
  kExpertPostNorm,  // likewise
  kRouterNorm,      // divided by sqrt(hidden)
  kDraftEmbeddingNorm,
  kDraftHiddenNorm,
  kDraftOutputNorm,
  kLayerInputNorm,  // [P]
  kLayerInputPostNorm,
  kAttnQNorm,   // [head_dim]; of all heads together [heads * head_dim], whole heads
  kAttnKNorm,   // likewise
  kQueryNorm,   // [q_rank]
  kLatentNorm,  // [kv_rank]
  kAttnQBias,   // biases: sharded like the output rows of their matrix
  kAttnKBias,
  kAttnVBias,
  kAttnOutputBias,  // [hidden], replicated; added once, by rank 0, as all row-parallel biases
  kAttnSinks,       // [heads]
  kDeltaConv,       // [channels, taps], a row per channel: of all q, k and v
  kDeltaDecayRate,  // [value_heads]
  kDeltaDecayBias,  // [value_heads]
  kDeltaNorm,       // [head_dim]
  kFfnGateBias,
  kFfnUpBias,
  kFfnDownBias,
  kRouterBias,      // [experts]
  kSelectionBias,   // [experts]
  kExpertGateBias,  // [experts, ffn]
  kExpertUpBias,
  kExpertDownBias,  // [experts, hidden]
  kExpertScale,     // [experts]

  kFirstFolded,                 // folded into the ModelSpec, never loaded by a worker
  kRopeFactors = kFirstFolded,  // [rotary_dims / 2]
  kLayerOutputScale,            // [1]
};

inline bool IsVector(Role role) { return role >= Role::kFirstVector; }
inline bool IsFolded(Role role) { return role >= Role::kFirstFolded; }

// A slice of one tensor in the mapped file: `count` matrices, `matrix_stride_bytes` apart, of
// `rows` rows of `cols` values, `row_stride_bytes` apart. For a row-parallel slice, whole quantised
// blocks are kept: `cols` covers the blocks that overlap the rank's columns, and the rank's own
// columns are [col_begin, col_begin + col_count) of them. Otherwise col_begin is 0 and col_count is
// cols.
//
// Where the rank's rows or columns are not adjacent in the tensor, the slice is scattered: `data`
// is the first matrix's first value, the runs give the rows and columns in their order, all of
// whole blocks, and Gather copies them together.
struct WeightSlice {
  // Adjacent rows or columns.
  struct Run {
    uint64_t begin;
    uint64_t end;
  };

  Role role{};
  int layer = -1;  // -1: not of a layer
  tensor::Type type = tensor::Type::kF32;
  const std::byte* data = nullptr;  // first row's first kept block
  uint64_t rows = 0;                // 1 for vectors
  uint64_t cols = 0;
  uint64_t row_stride_bytes = 0;
  uint64_t col_begin = 0;
  uint64_t col_count = 0;
  uint64_t count = 1;  // more than 1 only for experts
  uint64_t matrix_stride_bytes = 0;
  float factor = 1.0f;        // of vectors: their values are multiplied by it
  std::vector<float> scales;  // of matrices: factors of their products, `count`; empty: none
  std::vector<Run> row_runs;  // empty unless scattered
  std::vector<Run> col_runs;  // likewise
  std::string name;           // name in the file, for messages

  uint64_t bytes() const { return count * rows * tensor::RowBytes(type, cols); }
  // From the first byte to the last, gaps between rows included.
  uint64_t extent_bytes() const {
    if (scattered()) return count * matrix_stride_bytes;
    return (count - 1) * matrix_stride_bytes + (rows - 1) * row_stride_bytes +
           tensor::RowBytes(type, cols);
  }
  bool scattered() const { return !row_runs.empty(); }
  // The rows of all matrices, contiguous: bytes() of them.
  void Gather(std::byte* to) const;
};

}  // namespace tandem::model

#endif  // TANDEM_COMMON_MODEL_WEIGHTS_H_
