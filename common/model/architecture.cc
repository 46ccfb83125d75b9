#include "common/model/architecture.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "common/base/check.h"
#include "common/base/strings.h"

namespace tandem::model {
namespace {

constexpr Extent kOne{Dim::kOne, Dim::kOne};
constexpr Extent kHidden{Dim::kHidden, Dim::kOne};
constexpr Extent kVocab{Dim::kVocab, Dim::kOne};
constexpr Extent kFfn{Dim::kFfn, Dim::kOne};
constexpr Extent kHeadDim{Dim::kHeadDim, Dim::kOne};
constexpr Extent kRopePairs{Dim::kRopePairs, Dim::kOne};
constexpr Extent kQueries{Dim::kHeads, Dim::kHeadDim};
constexpr Extent kKeys{Dim::kKvHeads, Dim::kHeadDim};
constexpr Extent kValues{Dim::kKvHeads, Dim::kValueDim};
constexpr Extent kAttention{Dim::kHeads, Dim::kValueDim};

constexpr ShardRule kWhole = ShardRule::kReplicated;
constexpr ShardRule kRows = ShardRule::kRows;
constexpr ShardRule kCols = ShardRule::kCols;

// A decoder with pre-norms, grouped-query attention and a gated FFN: llama and its relatives. What
// a model of the family does not have (biases, head norms, an own output matrix, rope factors) is
// not in its file.
constexpr TensorRow kDecoderTensors[] = {
    {"token_embd.weight", Role::kTokenEmbedding, kVocab, kHidden, kRows, Feature::kAlways},
    {"output_norm.weight", Role::kOutputNorm, kOne, kHidden, kWhole, Feature::kAlways},
    {"output.weight", Role::kOutput, kVocab, kHidden, kRows, Feature::kUntiedHead},
    {"rope_freqs.weight", Role::kRopeFactors, kOne, kRopePairs, kWhole, Feature::kRopeFactors},
    {"blk.{L}.attn_norm.weight", Role::kAttnNorm, kOne, kHidden, kWhole, Feature::kAlways},
    {"blk.{L}.attn_q.weight", Role::kAttnQ, kQueries, kHidden, kRows, Feature::kAlways},
    {"blk.{L}.attn_k.weight", Role::kAttnK, kKeys, kHidden, kRows, Feature::kAlways},
    {"blk.{L}.attn_v.weight", Role::kAttnV, kValues, kHidden, kRows, Feature::kAlways},
    {"blk.{L}.attn_q.bias", Role::kAttnQBias, kOne, kQueries, kCols, Feature::kQkvBias},
    {"blk.{L}.attn_k.bias", Role::kAttnKBias, kOne, kKeys, kCols, Feature::kQkvBias},
    {"blk.{L}.attn_v.bias", Role::kAttnVBias, kOne, kValues, kCols, Feature::kQkvBias},
    {"blk.{L}.attn_q_norm.weight", Role::kAttnQNorm, kOne, kHeadDim, kWhole, Feature::kQkNorm},
    {"blk.{L}.attn_k_norm.weight", Role::kAttnKNorm, kOne, kHeadDim, kWhole, Feature::kQkNorm},
    {"blk.{L}.attn_output.weight", Role::kAttnOutput, kHidden, kAttention, kCols, Feature::kAlways},
    {"blk.{L}.attn_output.bias", Role::kAttnOutputBias, kOne, kHidden, kWhole,
     Feature::kOutputBias},
    {"blk.{L}.ffn_norm.weight", Role::kFfnNorm, kOne, kHidden, kWhole, Feature::kAlways},
    {"blk.{L}.ffn_gate.weight", Role::kFfnGate, kFfn, kHidden, kRows, Feature::kAlways},
    {"blk.{L}.ffn_up.weight", Role::kFfnUp, kFfn, kHidden, kRows, Feature::kAlways},
    {"blk.{L}.ffn_down.weight", Role::kFfnDown, kHidden, kFfn, kCols, Feature::kAlways},
};

constexpr Architecture kArchitectures[] = {
    {"llama", RopePairing::kAdjacent, /*requires_qk_norm=*/false, kDecoderTensors},
    {"qwen2", RopePairing::kHalves, /*requires_qk_norm=*/false, kDecoderTensors},
    {"qwen3", RopePairing::kHalves, /*requires_qk_norm=*/true, kDecoderTensors},
};

}  // namespace

std::span<const Architecture> Architectures() { return kArchitectures; }

const Architecture* FindArchitecture(std::string_view name) {
  for (const Architecture& row : kArchitectures) {
    if (row.name == name) return &row;
  }
  return nullptr;
}

std::string TensorName(const TensorRow& row, int layer) {
  return absl::StrReplaceAll(Sv(row.pattern), {{"{L}", absl::StrCat(layer)}});
}

uint64_t SizeOf(const ModelSpec& spec, Dim dim) {
  switch (dim) {
    case Dim::kOne:
      return 1;
    case Dim::kHidden:
      return spec.hidden_size;
    case Dim::kVocab:
      return spec.vocab_size;
    case Dim::kFfn:
      return spec.ffn_size;
    case Dim::kHeads:
      return spec.num_heads;
    case Dim::kKvHeads:
      return spec.num_kv_heads;
    case Dim::kHeadDim:
      return spec.head_dim;
    case Dim::kValueDim:
      return spec.value_dim;
    case Dim::kRopePairs:
      return spec.rope.rotary_dims / 2;
  }
  TANDEM_CHECK(false) << "dim " << static_cast<int>(dim);
  return 0;
}

uint64_t SizeOf(const ModelSpec& spec, Extent extent) {
  return SizeOf(spec, extent.major) * SizeOf(spec, extent.minor);
}

bool HasFeature(const ModelSpec& spec, Feature feature) {
  switch (feature) {
    case Feature::kAlways:
      return true;
    case Feature::kQkvBias:
      return spec.has_qkv_bias;
    case Feature::kOutputBias:
      return spec.has_output_bias;
    case Feature::kQkNorm:
      return spec.has_qk_norm;
    case Feature::kUntiedHead:
      return !spec.tied_embeddings;
    case Feature::kRopeFactors:
      return spec.has_rope_factors;
  }
  TANDEM_CHECK(false) << "feature " << static_cast<int>(feature);
  return false;
}

}  // namespace tandem::model
