// TensorRow: one tensor of an architecture, its shape in terms of the spec's sizes, and its shard
// rule.
//
// Plain constant data, thread-safe.
#ifndef TANDEM_COMMON_MODEL_TENSOR_ROW_H_
#define TANDEM_COMMON_MODEL_TENSOR_ROW_H_

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "common/model/feature.h"
#include "common/model/spec.h"
#include "common/model/weights.h"

namespace tandem::model {

// A size of the spec, used in shapes.
enum class Dim {
  kOne,
  kHidden,
  kVocab,
  kContext,
  kFfn,
  kHeads,
  kKvHeads,
  kHeadDim,
  kValueDim,
  kRopePairs,  // rotary_dims / 2
  kExperts,
  kExpertFfn,
  kSharedFfn,
  kQueryRank,
  kKvRank,
  kMlaRope,
  kMlaNope,
  kMlaValue,
  kMlaQuery,   // nope + rope
  kMlaLatent,  // nope + value
  kLayers,
  kDraftInputs,  // of a draft head's projection: an embedding and a hidden state
  kLayerInput,   // of a layer's per-layer embedding
  kDeltaKeyHeads,
  kDeltaValueHeads,
  kDeltaHeads,  // of q, k and v
  kDeltaHeadDim,
  kDeltaValuesOfKey,  // value heads per key head
  kDeltaDimsOfKey,    // the same, times the head size
  kConvTaps,
};

// A product of two sizes, such as heads * head_dim. A sharded extent is split between units of
// `major`.
struct Extent {
  Dim major = Dim::kOne;
  Dim minor = Dim::kOne;
};

enum class ShardRule {
  kReplicated,
  kRows,         // column-parallel: a rank has some output rows
  kCols,         // row-parallel: a rank has some input columns (for a vector: some of its values)
  kExpertRows,   // whole experts if the plan is expert-parallel, else some rows of every expert
  kExpertCols,   // likewise, columns
  kExpertWhole,  // likewise, else all of every expert
};

// The layers that have the tensor: kCached those with a KV cache of their own, kValues those of
// them whose values have a projection of their own. What the others may have of these is not used.
// kAttention and kRecurrent those with and without attention. All but kDraft may include the draft
// head.
enum class Layers { kAll, kDense, kMixture, kCached, kValues, kAttention, kRecurrent, kDraft };

// One tensor, or one per layer if the name has "{L}". Rows with the same pattern are parts of one
// tensor, concatenated by rows (or values, for vectors) in the order of the table; if interleaved,
// unit by unit of their majors: the first unit of each part, then the second of each.
struct TensorRow {
  std::string_view pattern;
  Role role;
  Extent rows;
  Extent cols;
  ShardRule shard;
  Feature feature = Feature::kAlways;
  Layers layers = Layers::kAll;
  Dim count = Dim::kOne;         // the third dimension: a matrix per expert
  bool per_root_hidden = false;  // a vector that is divided by sqrt(hidden)
  bool interleaved = false;

  bool per_layer() const { return pattern.find("{L}") != std::string_view::npos; }
};

// "blk.3.attn_q.weight" from "blk.{L}.attn_q.weight" and 3. `layer` is not used if the pattern has
// no "{L}".
std::string TensorName(const TensorRow& row, int layer);

// A tensor's name taken apart: "blk.12.attn_q.weight" is layer 12 of "blk.{L}.attn_q.weight". Only
// the spelling of TensorName has a layer.
struct ParsedName {
  std::string pattern;
  std::optional<uint32_t> layer;
};
ParsedName ParseTensorName(std::string_view name);

// The value of a symbol or an extent in a layer of a spec (any layer, for what is of none).
// Validate() bounds the sizes, so products fit.
uint64_t SizeOf(const ModelSpec& spec, Dim dim, uint32_t layer = 0);
uint64_t SizeOf(const ModelSpec& spec, Extent extent, uint32_t layer = 0);

// Whether a model of the spec has the row's tensor in `layer`.
bool Applies(const ModelSpec& spec, const TensorRow& row, uint32_t layer);

// Location of a row's part in its tensor, and the tensor's full shape.
struct Placement {
  uint64_t first_row = 0;  // if interleaved, of each unit
  uint64_t first_col = 0;  // of vectors in parts
  uint64_t rows = 0;
  uint64_t cols = 0;
  uint64_t count = 0;
  uint64_t unit_rows = 0;  // of an interleaved part: all parts' rows of a unit
};
Placement Place(const ModelSpec& spec, std::span<const TensorRow> table, const TensorRow& row,
                uint32_t layer);

}  // namespace tandem::model

#endif  // TANDEM_COMMON_MODEL_TENSOR_ROW_H_
