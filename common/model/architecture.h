// The architectures Tandem knows, as rows of a table: where sizes come from, and which tensors
// there are.
//
// A new architecture is a new row; new code is only for new mathematics. Plain constant data,
// thread-safe.
#ifndef TANDEM_COMMON_MODEL_ARCHITECTURE_H_
#define TANDEM_COMMON_MODEL_ARCHITECTURE_H_

#include <span>
#include <string>
#include <string_view>

#include "common/model/spec.h"
#include "common/model/weights.h"

namespace tandem::model {

// A size of the spec that shapes are made of.
enum class Dim {
  kOne,
  kHidden,
  kVocab,
  kFfn,
  kHeads,
  kKvHeads,
  kHeadDim,
  kValueDim,
  kRopePairs,  // rotary_dims / 2
};

// A product of two sizes, such as heads * head_dim. A sharded extent is cut between units of
// `major`.
struct Extent {
  Dim major = Dim::kOne;
  Dim minor = Dim::kOne;
};

enum class ShardRule {
  kReplicated,
  kRows,  // column-parallel: a rank has some output rows
  kCols,  // row-parallel: a rank has some input columns (for a vector: some of its values)
};

// What a tensor's presence says. Tensors of one feature are all there, in every layer, or none is.
enum class Feature {
  kAlways,  // the tensor must be there
  kQkvBias,
  kOutputBias,
  kQkNorm,
  kUntiedHead,
  kRopeFactors,
};

// One tensor, or one of every layer where the name has "{L}".
struct TensorRow {
  std::string_view pattern;
  Role role;
  Extent rows;
  Extent cols;
  ShardRule shard;
  Feature feature;
  bool per_layer() const { return pattern.find("{L}") != std::string_view::npos; }
};

struct Architecture {
  std::string_view name;  // general.architecture
  RopePairing pairing;
  bool requires_qk_norm;  // the mathematics has no other form
  std::span<const TensorRow> tensors;
};

std::span<const Architecture> Architectures();
// Null for a name that is not in the table.
const Architecture* FindArchitecture(std::string_view name);

// "blk.3.attn_q.weight" from "blk.{L}.attn_q.weight" and 3. `layer` is not used where the pattern
// has no "{L}".
std::string TensorName(const TensorRow& row, int layer);

// The sizes that a spec gives to a symbol or an extent. Validate() bounds the sizes, so products
// fit.
uint64_t SizeOf(const ModelSpec& spec, Dim dim);
uint64_t SizeOf(const ModelSpec& spec, Extent extent);

// Whether the spec, as probed, has the feature.
bool HasFeature(const ModelSpec& spec, Feature feature);

}  // namespace tandem::model

#endif  // TANDEM_COMMON_MODEL_ARCHITECTURE_H_
