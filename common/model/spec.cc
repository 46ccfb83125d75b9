#include "common/model/spec.h"

#include <cmath>
#include <string_view>

#include "absl/strings/str_cat.h"
#include "common/base/status.h"
#include "common/base/strings.h"

namespace tandem::model {
namespace {

// Far above any real model; products of two sizes, times 8 bytes, still fit in 64 bits.
constexpr uint32_t kMaxLayers = 1u << 12;
constexpr uint32_t kMaxHidden = 1u << 20;
constexpr uint32_t kMaxHeads = 1u << 14;
constexpr uint32_t kMaxHeadDim = 1u << 14;
constexpr uint32_t kMaxFfn = 1u << 24;
constexpr uint32_t kMaxExperts = 1u << 16;
constexpr uint32_t kMaxVocab = 1u << 24;
constexpr uint32_t kMaxContext = 1u << 28;

// Sizes are named after their metadata keys.
absl::Status CheckRange(std::string_view what, uint32_t value, uint32_t limit) {
  if (value >= 1 && value <= limit) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat(Sv(what), ": needed 1 to ", limit, ", found ", value));
}

absl::Status CheckSizes(const ModelSpec& spec) {
  TANDEM_RETURN_IF_ERROR(CheckRange("block_count", spec.num_layers, kMaxLayers));
  TANDEM_RETURN_IF_ERROR(CheckRange("embedding_length", spec.hidden_size, kMaxHidden));
  TANDEM_RETURN_IF_ERROR(CheckRange("attention.head_count", spec.num_heads, kMaxHeads));
  TANDEM_RETURN_IF_ERROR(CheckRange("attention.head_count_kv", spec.num_kv_heads, kMaxHeads));
  TANDEM_RETURN_IF_ERROR(CheckRange("attention.key_length", spec.head_dim, kMaxHeadDim));
  TANDEM_RETURN_IF_ERROR(CheckRange("attention.value_length", spec.value_dim, kMaxHeadDim));
  TANDEM_RETURN_IF_ERROR(CheckRange("feed_forward_length", spec.ffn_size, kMaxFfn));
  TANDEM_RETURN_IF_ERROR(CheckRange("vocabulary size", spec.vocab_size, kMaxVocab));
  TANDEM_RETURN_IF_ERROR(CheckRange("context_length", spec.context_length, kMaxContext));
  if (spec.num_heads % spec.num_kv_heads != 0) {
    return absl::InvalidArgumentError(absl::StrCat("the ", spec.num_heads,
                                                   " query heads cannot share ", spec.num_kv_heads,
                                                   " KV heads evenly"));
  }
  if (spec.value_dim != spec.head_dim && !spec.mla.has_value()) {
    return absl::UnimplementedError(absl::StrCat("value heads of another size than key heads (",
                                                 spec.value_dim, " and ", spec.head_dim,
                                                 ") are not supported"));
  }
  return absl::OkStatus();
}

absl::Status CheckMla(const MlaSpec& mla) {
  if (mla.q_rank != 0)
    TANDEM_RETURN_IF_ERROR(CheckRange("attention.q_lora_rank", mla.q_rank, kMaxHidden));
  TANDEM_RETURN_IF_ERROR(CheckRange("attention.kv_lora_rank", mla.kv_rank, kMaxHeadDim));
  TANDEM_RETURN_IF_ERROR(CheckRange("attention.key_length", mla.nope_dims, kMaxHeadDim));
  TANDEM_RETURN_IF_ERROR(CheckRange("rope.dimension_count", mla.rope_dims, kMaxHeadDim));
  return CheckRange("attention.value_length", mla.value_dims, kMaxHeadDim);
}

absl::Status CheckMoe(const MoeSpec& moe) {
  TANDEM_RETURN_IF_ERROR(CheckRange("expert_count", moe.num_experts, kMaxExperts));
  TANDEM_RETURN_IF_ERROR(CheckRange("expert_used_count", moe.experts_per_token, moe.num_experts));
  TANDEM_RETURN_IF_ERROR(CheckRange("expert_feed_forward_length", moe.ffn_size, kMaxFfn));
  if (moe.shared_ffn_size == 0) return absl::OkStatus();
  return CheckRange("expert_shared_feed_forward_length", moe.shared_ffn_size, kMaxFfn);
}

absl::Status CheckNumbers(const ModelSpec& spec) {
  if (!(spec.norm_epsilon > 0.0f && spec.norm_epsilon <= 1.0f)) {
    return absl::InvalidArgumentError(absl::StrCat(
        "attention.layer_norm_rms_epsilon: needed a number above 0 and at most 1, found ",
        spec.norm_epsilon));
  }
  if (!(spec.attention_scale > 0.0f && std::isfinite(spec.attention_scale))) {
    return absl::InvalidArgumentError(
        absl::StrCat("attention scale: needed a number above 0, found ", spec.attention_scale));
  }
  return absl::OkStatus();
}

absl::Status CheckRope(const ModelSpec& spec, const RopeSpec& rope) {
  if (rope.rotary_dims < 2 || rope.rotary_dims % 2 != 0 || rope.rotary_dims > spec.head_dim) {
    return absl::InvalidArgumentError(
        absl::StrCat("rope dimensions: needed an even number from 2 to the head size ",
                     spec.head_dim, ", found ", rope.rotary_dims));
  }
  if (rope.inv_freq.size() != rope.rotary_dims / 2) {
    return absl::InvalidArgumentError(absl::StrCat(
        "rope frequencies: needed ", rope.rotary_dims / 2, ", found ", rope.inv_freq.size()));
  }
  for (const float frequency : rope.inv_freq) {
    if (!std::isfinite(frequency))
      return absl::InvalidArgumentError("a rope frequency is not finite");
  }
  if (!(rope.magnitude > 0.0f && std::isfinite(rope.magnitude))) {
    return absl::InvalidArgumentError(
        absl::StrCat("rope magnitude: needed a number above 0, found ", rope.magnitude));
  }
  return absl::OkStatus();
}

absl::Status CheckGroups(const ModelSpec& spec) {
  std::vector<bool> covered(spec.num_layers, false);
  for (const KvGroupSpec& group : spec.kv_groups) {
    for (const uint32_t layer : group.layers) {
      if (layer >= spec.num_layers) {
        return absl::InvalidArgumentError(
            absl::StrCat("a KV group has layer ", layer, " of ", spec.num_layers));
      }
      if (covered[layer]) {
        return absl::InvalidArgumentError(absl::StrCat("layer ", layer, " is in two KV groups"));
      }
      covered[layer] = true;
    }
  }
  for (uint32_t layer = 0; layer < spec.num_layers; ++layer) {
    if (!covered[layer]) {
      return absl::InvalidArgumentError(absl::StrCat("layer ", layer, " is in no KV group"));
    }
  }
  return absl::OkStatus();
}

}  // namespace

std::string_view Name(RopeScalingKind kind) {
  for (const auto& [named, name] : kRopeScalingNames) {
    if (named == kind) return name;
  }
  return "unknown";
}

absl::Status ModelSpec::ValidateSizes() const {
  TANDEM_RETURN_IF_ERROR(CheckSizes(*this));
  if (mla.has_value()) TANDEM_RETURN_IF_ERROR(CheckMla(*mla));
  if (moe.has_value()) TANDEM_RETURN_IF_ERROR(CheckMoe(*moe));
  return CheckNumbers(*this);
}

absl::Status ModelSpec::Validate() const {
  TANDEM_RETURN_IF_ERROR(ValidateSizes());
  if (rope.rotary_dims != 0 || !learned_positions) TANDEM_RETURN_IF_ERROR(CheckRope(*this, rope));
  if (window_rope.has_value()) TANDEM_RETURN_IF_ERROR(CheckRope(*this, *window_rope));
  return CheckGroups(*this);
}

}  // namespace tandem::model
