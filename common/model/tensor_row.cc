#include "common/model/tensor_row.h"

#include <charconv>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "common/base/check.h"
#include "common/base/strings.h"

namespace tandem::model {
namespace {

uint64_t MoeSize(const ModelSpec& spec, Dim dim) {
  if (!spec.moe.has_value()) return 0;
  switch (dim) {
    case Dim::kExperts:
      return spec.moe->num_experts;
    case Dim::kExpertFfn:
      return spec.moe->ffn_size;
    default:
      return spec.moe->shared_ffn_size;
  }
}

uint64_t MlaSize(const ModelSpec& spec, Dim dim) {
  if (!spec.mla.has_value()) return 0;
  const MlaSpec& mla = *spec.mla;
  switch (dim) {
    case Dim::kQueryRank:
      return mla.q_rank;
    case Dim::kKvRank:
      return mla.kv_rank;
    case Dim::kMlaRope:
      return mla.rope_dims;
    case Dim::kMlaNope:
      return mla.nope_dims;
    case Dim::kMlaValue:
      return mla.value_dims;
    case Dim::kMlaQuery:
      return uint64_t{mla.nope_dims} + mla.rope_dims;
    default:
      return uint64_t{mla.nope_dims} + mla.value_dims;
  }
}

uint64_t DeltaNetSize(const ModelSpec& spec, Dim dim) {
  if (!spec.delta_net.has_value()) return 0;
  const DeltaNetSpec& net = *spec.delta_net;
  const uint64_t per_key = net.value_heads / net.key_heads;
  switch (dim) {
    case Dim::kDeltaKeyHeads:
      return net.key_heads;
    case Dim::kDeltaValueHeads:
      return net.value_heads;
    case Dim::kDeltaHeads:
      return uint64_t{2} * net.key_heads + net.value_heads;
    case Dim::kDeltaHeadDim:
      return net.head_dim;
    case Dim::kDeltaValuesOfKey:
      return per_key;
    case Dim::kDeltaDimsOfKey:
      return per_key * net.head_dim;
    default:
      return net.conv_taps;
  }
}

bool IsOne(Extent extent) { return extent.major == Dim::kOne && extent.minor == Dim::kOne; }

}  // namespace

std::string TensorName(const TensorRow& row, int layer) {
  return absl::StrReplaceAll(Sv(row.pattern), {{"{L}", absl::StrCat(layer)}});
}

ParsedName ParseTensorName(std::string_view name) {
  constexpr std::string_view kPrefix = "blk.";
  const ParsedName whole{std::string(name), std::nullopt};
  if (!name.starts_with(kPrefix)) return whole;
  const char* const begin = name.data() + kPrefix.size();
  const char* const end = name.data() + name.size();
  uint32_t layer = 0;
  const auto parsed = std::from_chars(begin, end, layer);
  if (parsed.ec != std::errc() || (*begin == '0' && parsed.ptr != begin + 1)) return whole;
  return {absl::StrCat("blk.{L}", Sv({parsed.ptr, static_cast<size_t>(end - parsed.ptr)})), layer};
}

uint64_t SizeOf(const ModelSpec& spec, Dim dim, uint32_t layer) {
  switch (dim) {
    case Dim::kOne:
      return 1;
    case Dim::kHidden:
      return spec.hidden_size;
    case Dim::kVocab:
      return spec.vocab_size;
    case Dim::kContext:
      return spec.context_length;
    case Dim::kFfn:
      return spec.FfnSize(layer);
    case Dim::kHeads:
      return spec.num_heads;
    case Dim::kKvHeads:
      return spec.HeadsOf(layer).num_kv_heads;
    case Dim::kHeadDim:
      return spec.HeadsOf(layer).head_dim;
    case Dim::kValueDim:
      return spec.HeadsOf(layer).value_dim;
    case Dim::kRopePairs:
      return spec.rope.rotary_dims / 2;
    case Dim::kExperts:
    case Dim::kExpertFfn:
    case Dim::kSharedFfn:
      return MoeSize(spec, dim);
    case Dim::kQueryRank:
    case Dim::kKvRank:
    case Dim::kMlaRope:
    case Dim::kMlaNope:
    case Dim::kMlaValue:
    case Dim::kMlaQuery:
    case Dim::kMlaLatent:
      return MlaSize(spec, dim);
    case Dim::kLayers:
      return spec.num_layers;
    case Dim::kDraftInputs:
      return 2;
    case Dim::kLayerInput:
      return spec.layer_input_size;
    case Dim::kDeltaKeyHeads:
    case Dim::kDeltaValueHeads:
    case Dim::kDeltaHeads:
    case Dim::kDeltaHeadDim:
    case Dim::kDeltaValuesOfKey:
    case Dim::kDeltaDimsOfKey:
    case Dim::kConvTaps:
      return DeltaNetSize(spec, dim);
  }
  TANDEM_CHECK(false) << "dim " << static_cast<int>(dim);
  return 0;
}

uint64_t SizeOf(const ModelSpec& spec, Extent extent, uint32_t layer) {
  return SizeOf(spec, extent.major, layer) * SizeOf(spec, extent.minor, layer);
}

bool Applies(const ModelSpec& spec, const TensorRow& row, uint32_t layer) {
  if (!spec.Has(row.feature)) return false;
  switch (row.layers) {
    case Layers::kAll:
      return true;
    case Layers::kDense:
      return !spec.IsMoe(layer);
    case Layers::kMixture:
      return spec.IsMoe(layer);
    case Layers::kCached:
      return spec.HasCache(layer);
    case Layers::kValues:
      return spec.HasCache(layer) && !spec.ValuesAreKeys(layer);
    case Layers::kAttention:
      return !spec.IsRecurrent(layer);
    case Layers::kRecurrent:
      return spec.IsRecurrent(layer);
    case Layers::kDraft:
      return spec.IsDraft(layer);
  }
  return false;
}

Placement Place(const ModelSpec& spec, std::span<const TensorRow> table, const TensorRow& row,
                uint32_t layer) {
  Placement place{.count = SizeOf(spec, row.count)};
  const bool vector = IsOne(row.rows);
  for (const TensorRow& part : table) {
    if (part.pattern != row.pattern) continue;
    if (&part == &row) {
      place.first_row = vector ? 0 : row.interleaved ? place.unit_rows : place.rows;
      place.first_col = vector ? place.cols : 0;
    }
    if (vector) {
      place.cols += SizeOf(spec, part.cols, layer);
    } else {
      place.rows += SizeOf(spec, part.rows, layer);
      if (row.interleaved) place.unit_rows += SizeOf(spec, part.rows.minor, layer);
    }
  }
  if (vector) {
    place.rows = 1;
  } else {
    place.cols = SizeOf(spec, row.cols, layer);
  }
  return place;
}

}  // namespace tandem::model
