#include "common/model/read_mixture.h"

#include <cmath>
#include <string>

#include "absl/strings/str_cat.h"
#include "common/base/status.h"
#include "common/gguf/keys.h"
#include "common/gguf/quote.h"

namespace tandem::model {
namespace {

namespace keys = gguf::keys;

// Numbers of the key expert_gating_func.
constexpr uint32_t kSoftmax = 1;
constexpr uint32_t kSigmoid = 2;

absl::Status OutOfRange(const MetadataReader& reader, std::string_view key, uint32_t low,
                        uint32_t high, uint32_t found) {
  return absl::InvalidArgumentError(absl::StrCat(
      "key ", gguf::Quoted(reader.Full(key)), ": needed ", low, " to ", high, ", found ", found));
}

// Expert groups as in DeepSeek-V3's paper, if the file has them: with sigmoid scores a group is
// ranked by its top_k / groups_kept best experts, with softmax scores (DeepSeek-V2) by its best.
absl::Status ReadGroups(const MetadataReader& reader, MoeSpec& moe) {
  TANDEM_ASSIGN_OR_RETURN(moe.groups, reader.Size(keys::kExpertGroupCount, 1));
  TANDEM_ASSIGN_OR_RETURN(moe.groups_kept, reader.Size(keys::kExpertGroupUsedCount, moe.groups));
  if (moe.groups > 64 || moe.num_experts % moe.groups != 0) {
    return absl::InvalidArgumentError(absl::StrCat(
        "key ", gguf::Quoted(reader.Full(keys::kExpertGroupCount)), ": needed a divisor of the ",
        moe.num_experts, " experts up to 64, found ", moe.groups));
  }
  if (moe.groups_kept > moe.groups) {
    return OutOfRange(reader, keys::kExpertGroupUsedCount, 1, moe.groups, moe.groups_kept);
  }
  const uint32_t in_groups = moe.num_experts / moe.groups * moe.groups_kept;
  if (in_groups < moe.experts_per_token) {
    return absl::InvalidArgumentError(absl::StrCat("the ", moe.groups_kept, " expert groups have ",
                                                   in_groups, " experts, fewer than the ",
                                                   moe.experts_per_token, " that a token takes"));
  }
  return absl::OkStatus();
}

void SetScores(bool sigmoid, MoeSpec& moe) {
  moe.sigmoid = sigmoid;
  // A group counts by its best experts: two in DeepSeek V3 and what followed, one in V2.
  moe.group_top = sigmoid ? 2 : 1;
  moe.group_top = std::min(moe.group_top, moe.num_experts / moe.groups);
}

absl::Status ReadRouting(const MetadataReader& reader, const Architecture& architecture,
                         MoeSpec& moe) {
  TANDEM_ASSIGN_OR_RETURN(
      const uint32_t gating,
      reader.Size(keys::kExpertGatingFunction, architecture.sigmoid_experts ? kSigmoid : kSoftmax));
  // gpt-oss's number 3, softmax over the chosen experts, equals softmax over all, normalised.
  if (gating > 3) return OutOfRange(reader, keys::kExpertGatingFunction, 1, 3, gating);
  TANDEM_ASSIGN_OR_RETURN(moe.normalize,
                          reader.Bool(keys::kExpertWeightsNorm, architecture.normalizes_experts));
  TANDEM_ASSIGN_OR_RETURN(const float scale, reader.NonNegative(keys::kExpertWeightsScale));
  moe.scale = scale == 0.0f ? 1.0f : scale;
  TANDEM_RETURN_IF_ERROR(ReadGroups(reader, moe));
  SetScores(gating == kSigmoid, moe);
  return absl::OkStatus();
}

}  // namespace

void AssumeScores(const MetadataReader& reader, ModelSpec& spec) {
  if (!spec.moe.has_value() || reader.Has(keys::kExpertGatingFunction)) return;
  if (spec.Has(Feature::kSelectionBias)) SetScores(/*sigmoid=*/true, *spec.moe);
}

absl::StatusOr<std::optional<MoeSpec>> ReadMixture(const MetadataReader& reader,
                                                   const Architecture& architecture,
                                                   uint32_t ffn_size) {
  MoeSpec moe;
  TANDEM_ASSIGN_OR_RETURN(moe.num_experts, reader.Count(keys::kExpertCount));
  if (moe.num_experts == 0) return std::nullopt;
  TANDEM_ASSIGN_OR_RETURN(moe.experts_per_token, reader.Size(keys::kExpertUsedCount));
  if (moe.experts_per_token > moe.num_experts) {
    return OutOfRange(reader, keys::kExpertUsedCount, 1, moe.num_experts, moe.experts_per_token);
  }
  TANDEM_ASSIGN_OR_RETURN(moe.ffn_size, reader.EqualSize(keys::kExpertFeedForwardLength, ffn_size));
  TANDEM_ASSIGN_OR_RETURN(moe.first_layer, reader.Count(keys::kLeadingDenseBlockCount));
  moe.beside_dense = architecture.experts_beside_dense;
  TANDEM_ASSIGN_OR_RETURN(moe.period, reader.Size(keys::kInterleaveMoeLayerStep, 1));
  moe.weighs_input = architecture.weighs_expert_input;
  if (architecture.shares_experts) {
    uint32_t shared = architecture.shared_experts;
    if (reader.Has(keys::kExpertSharedCount)) {
      TANDEM_ASSIGN_OR_RETURN(shared, reader.Count(keys::kExpertSharedCount));
    }
    if (shared > moe.num_experts + 64) {
      return OutOfRange(reader, keys::kExpertSharedCount, 0, moe.num_experts + 64, shared);
    }
    const uint64_t together = uint64_t{shared} * moe.ffn_size;
    if (together > UINT32_MAX) {
      return OutOfRange(reader, keys::kExpertSharedCount, 0, UINT32_MAX / moe.ffn_size, shared);
    }
    TANDEM_ASSIGN_OR_RETURN(moe.shared_ffn_size, reader.Size(keys::kExpertSharedFeedForwardLength,
                                                             static_cast<uint32_t>(together)));
  }
  TANDEM_RETURN_IF_ERROR(ReadRouting(reader, architecture, moe));
  return moe;
}

absl::Status ReadLatentAttention(const MetadataReader& reader, ModelSpec& spec) {
  MlaSpec mla;
  TANDEM_ASSIGN_OR_RETURN(mla.q_rank, reader.Count(keys::kQueryRank));
  TANDEM_ASSIGN_OR_RETURN(mla.kv_rank, reader.Size(keys::kKvRank));
  TANDEM_ASSIGN_OR_RETURN(mla.rope_dims, reader.Size(keys::kRopeDimensionCount));
  // Files of the newer layout have separate keys for the decompressed sizes.
  const std::string_view key_length =
      reader.Has(keys::kKeyLengthMla) ? keys::kKeyLengthMla : keys::kKeyLength;
  const std::string_view value_length =
      reader.Has(keys::kValueLengthMla) ? keys::kValueLengthMla : keys::kValueLength;
  TANDEM_ASSIGN_OR_RETURN(const uint32_t query_dims, reader.Size(key_length));
  TANDEM_ASSIGN_OR_RETURN(mla.value_dims, reader.Size(value_length));
  if (query_dims <= mla.rope_dims) {
    return absl::InvalidArgumentError(absl::StrCat("key ", gguf::Quoted(reader.Full(key_length)),
                                                   ": needed more than the ", mla.rope_dims,
                                                   " rope dimensions, found ", query_dims));
  }
  if (mla.kv_rank > UINT32_MAX - mla.rope_dims) {
    return OutOfRange(reader, keys::kKvRank, 1, UINT32_MAX - mla.rope_dims, mla.kv_rank);
  }
  mla.nope_dims = query_dims - mla.rope_dims;
  spec.mla = mla;
  spec.num_kv_heads = 1;
  spec.head_dim = mla.kv_rank + mla.rope_dims;
  spec.value_dim = mla.kv_rank;
  spec.attention_scale = static_cast<float>(1.0 / std::sqrt(static_cast<double>(query_dims)));
  return absl::OkStatus();
}

}  // namespace tandem::model
