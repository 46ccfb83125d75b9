#include "common/model/spec.h"

#include <algorithm>
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
// Of a key or value head of a delta net: a state has its square.
constexpr uint32_t kMaxStateDim = 1u << 10;
constexpr uint32_t kMinConvTaps = 2;
constexpr uint32_t kMaxExperts = 1u << 16;
constexpr uint32_t kMaxVocab = 1u << 24;
constexpr uint32_t kMaxContext = 1u << 28;

// Sizes are named after their metadata keys.
absl::Status CheckRange(std::string_view what, uint32_t value, uint32_t limit) {
  if (value >= 1 && value <= limit) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat(Sv(what), ": needed 1 to ", limit, ", found ", value));
}

// Of all heads together: a row of a matrix.
absl::Status CheckAllHeads(const ModelSpec& spec, std::string_view what, uint32_t of_head) {
  if (uint64_t{spec.num_heads} * of_head <= kMaxFfn) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(Sv(what), ": needed at most ",
                                                 kMaxFfn / spec.num_heads, " with ", spec.num_heads,
                                                 " heads, found ", of_head));
}

absl::Status CheckHeads(const ModelSpec& spec, const HeadSizes& heads) {
  TANDEM_RETURN_IF_ERROR(CheckRange("attention.head_count_kv", heads.num_kv_heads, kMaxHeads));
  TANDEM_RETURN_IF_ERROR(CheckRange("attention.key_length", heads.head_dim, kMaxHeadDim));
  TANDEM_RETURN_IF_ERROR(CheckRange("attention.value_length", heads.value_dim, kMaxHeadDim));
  TANDEM_RETURN_IF_ERROR(CheckAllHeads(spec, "attention.key_length", heads.head_dim));
  if (spec.num_heads % heads.num_kv_heads != 0) {
    return absl::InvalidArgumentError(absl::StrCat("the ", spec.num_heads,
                                                   " query heads cannot share ", heads.num_kv_heads,
                                                   " KV heads evenly"));
  }
  if (heads.value_dim != heads.head_dim && !spec.mla.has_value()) {
    return absl::UnimplementedError(absl::StrCat("value heads of another size than key heads (",
                                                 heads.value_dim, " and ", heads.head_dim,
                                                 ") are not supported"));
  }
  return absl::OkStatus();
}

absl::Status CheckSizes(const ModelSpec& spec) {
  TANDEM_RETURN_IF_ERROR(CheckRange("block_count", spec.num_layers, kMaxLayers));
  TANDEM_RETURN_IF_ERROR(CheckRange("embedding_length", spec.hidden_size, kMaxHidden));
  TANDEM_RETURN_IF_ERROR(CheckRange("attention.head_count", spec.num_heads, kMaxHeads));
  TANDEM_RETURN_IF_ERROR(CheckHeads(spec, {spec.num_kv_heads, spec.head_dim, spec.value_dim}));
  TANDEM_RETURN_IF_ERROR(CheckRange("feed_forward_length", spec.ffn_size, kMaxFfn));
  TANDEM_RETURN_IF_ERROR(CheckRange("vocabulary size", spec.vocab_size, kMaxVocab));
  TANDEM_RETURN_IF_ERROR(CheckRange("context_length", spec.context_length, kMaxContext));
  if (uint64_t{spec.layer_input_size} * spec.num_layers > kMaxFfn) {
    return absl::InvalidArgumentError(
        absl::StrCat("embedding_length_per_layer_input: needed at most ", kMaxFfn / spec.num_layers,
                     " with ", spec.num_layers, " layers, found ", spec.layer_input_size));
  }
  if (spec.layer_ffn_sizes.empty()) return absl::OkStatus();
  if (spec.layer_ffn_sizes.size() != spec.num_layers) {
    return absl::InvalidArgumentError(absl::StrCat("feed_forward_length: needed ", spec.num_layers,
                                                   " values, one per layer, found ",
                                                   spec.layer_ffn_sizes.size()));
  }
  for (const uint32_t size : spec.layer_ffn_sizes) {
    TANDEM_RETURN_IF_ERROR(CheckRange("feed_forward_length", size, spec.ffn_size));
  }
  return absl::OkStatus();
}

absl::Status CheckMla(const ModelSpec& spec, const MlaSpec& mla) {
  if (mla.q_rank != 0)
    TANDEM_RETURN_IF_ERROR(CheckRange("attention.q_lora_rank", mla.q_rank, kMaxHidden));
  TANDEM_RETURN_IF_ERROR(CheckRange("attention.kv_lora_rank", mla.kv_rank, kMaxHeadDim));
  TANDEM_RETURN_IF_ERROR(CheckRange("attention.key_length", mla.nope_dims, kMaxHeadDim));
  TANDEM_RETURN_IF_ERROR(CheckRange("rope.dimension_count", mla.rope_dims, kMaxHeadDim));
  TANDEM_RETURN_IF_ERROR(CheckRange("attention.value_length", mla.value_dims, kMaxHeadDim));
  return CheckAllHeads(spec, "attention.value_length", mla.value_dims);
}

absl::Status CheckMoe(const MoeSpec& moe) {
  TANDEM_RETURN_IF_ERROR(CheckRange("expert_count", moe.num_experts, kMaxExperts));
  TANDEM_RETURN_IF_ERROR(CheckRange("expert_used_count", moe.experts_per_token, moe.num_experts));
  TANDEM_RETURN_IF_ERROR(CheckRange("expert_feed_forward_length", moe.ffn_size, kMaxFfn));
  if (moe.shared_ffn_size == 0) return absl::OkStatus();
  return CheckRange("expert_shared_feed_forward_length", moe.shared_ffn_size, kMaxFfn);
}

absl::Status CheckDeltaNet(const DeltaNetSpec& net) {
  TANDEM_RETURN_IF_ERROR(CheckRange("ssm.state_size", net.head_dim, kMaxStateDim));
  TANDEM_RETURN_IF_ERROR(CheckRange("ssm.group_count", net.key_heads, kMaxHeads));
  TANDEM_RETURN_IF_ERROR(CheckRange("ssm.time_step_rank", net.value_heads, kMaxHeads));
  if (net.conv_taps < kMinConvTaps || net.conv_taps > DeltaNetSpec::kMaxConvTaps) {
    return absl::InvalidArgumentError(absl::StrCat("ssm.conv_kernel: needed ", kMinConvTaps, " to ",
                                                   DeltaNetSpec::kMaxConvTaps, ", found ",
                                                   net.conv_taps));
  }
  if (net.value_heads % net.key_heads == 0) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("the ", net.value_heads,
                                                 " value heads of recurrent layers cannot share ",
                                                 net.key_heads, " key heads evenly"));
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

absl::Status CheckRope(const RopeSpec& rope, uint32_t head_dim) {
  if (rope.rotary_dims < 2 || rope.rotary_dims % 2 != 0 || rope.rotary_dims > head_dim) {
    return absl::InvalidArgumentError(
        absl::StrCat("rope dimensions: needed an even number from 2 to the head size ", head_dim,
                     ", found ", rope.rotary_dims));
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

// Marks the layer as covered by a KV group. `least`: one more than the layer before it in the
// group's list.
absl::Status Cover(uint32_t layer, uint32_t& least, std::vector<bool>& covered) {
  if (layer >= covered.size()) {
    return absl::InvalidArgumentError(
        absl::StrCat("a KV group has layer ", layer, " of ", covered.size()));
  }
  if (covered[layer]) {
    return absl::InvalidArgumentError(absl::StrCat("layer ", layer, " is in two KV groups"));
  }
  if (layer < least) {
    return absl::InvalidArgumentError(
        absl::StrCat("layer ", layer, " comes after layer ", least - 1, " in a KV group"));
  }
  covered[layer] = true;
  least = layer + 1;
  return absl::OkStatus();
}

absl::Status CheckReaders(const KvGroupSpec& group) {
  for (const CacheReader& reader : group.readers) {
    const bool known =
        std::find(group.layers.begin(), group.layers.end(), reader.source) != group.layers.end();
    if (known && reader.source < reader.layer) continue;
    return absl::InvalidArgumentError(
        absl::StrCat("layer ", reader.layer, " reads the cache of layer ", reader.source,
                     ", which is not an earlier one of its KV group"));
  }
  return absl::OkStatus();
}

absl::Status CheckGroups(const ModelSpec& spec) {
  if (spec.kv_groups.size() > kMaxKvGroups) {
    return absl::UnimplementedError(absl::StrCat("layers of ", spec.kv_groups.size(),
                                                 " kinds by window and KV heads are not ",
                                                 "supported, at most ", kMaxKvGroups));
  }
  std::vector<bool> covered(spec.NumLoadedLayers(), false);
  for (const KvGroupSpec& group : spec.kv_groups) {
    TANDEM_RETURN_IF_ERROR(CheckHeads(spec, spec.HeadsOf(group)));
    uint32_t least = 0;
    for (const uint32_t layer : group.layers) TANDEM_RETURN_IF_ERROR(Cover(layer, least, covered));
    least = 0;
    for (const CacheReader& reader : group.readers) {
      TANDEM_RETURN_IF_ERROR(Cover(reader.layer, least, covered));
    }
    TANDEM_RETURN_IF_ERROR(CheckReaders(group));
  }
  if (spec.kv_groups.empty()) {
    return absl::UnimplementedError("models without any layer of attention are not supported");
  }
  for (uint32_t layer = 0; layer < covered.size(); ++layer) {
    if (covered[layer] && spec.IsRecurrent(layer)) {
      return absl::InvalidArgumentError(
          absl::StrCat("layer ", layer, " is recurrent and in a KV group"));
    }
    if (!covered[layer] && !spec.IsRecurrent(layer)) {
      return absl::InvalidArgumentError(absl::StrCat("layer ", layer, " is in no KV group"));
    }
  }
  return absl::OkStatus();
}

// Whether the layer reads the cache of another of the group's.
bool Reads(const KvGroupSpec& group, uint32_t layer) {
  const auto at =
      std::lower_bound(group.readers.begin(), group.readers.end(), layer,
                       [](const CacheReader& reader, uint32_t l) { return reader.layer < l; });
  return at != group.readers.end() && at->layer == layer;
}

// The rope tables against the heads that they rotate.
absl::Status CheckRopes(const ModelSpec& spec) {
  if (spec.rope.rotary_dims == 0 && spec.learned_positions) return absl::OkStatus();
  for (const KvGroupSpec& group : spec.kv_groups) {
    const bool own = group.window_tokens != 0 && spec.window_rope.has_value();
    TANDEM_RETURN_IF_ERROR(
        CheckRope(own ? *spec.window_rope : spec.rope, spec.HeadsOf(group).head_dim));
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
  if (mla.has_value()) TANDEM_RETURN_IF_ERROR(CheckMla(*this, *mla));
  if (moe.has_value()) TANDEM_RETURN_IF_ERROR(CheckMoe(*moe));
  if (delta_net.has_value()) TANDEM_RETURN_IF_ERROR(CheckDeltaNet(*delta_net));
  return CheckNumbers(*this);
}

absl::Status ModelSpec::ValidateGroups() const { return CheckGroups(*this); }

bool ModelSpec::IsRecurrent(uint32_t layer) const {
  return delta_net.has_value() &&
         std::binary_search(delta_net->layers.begin(), delta_net->layers.end(), layer);
}

absl::Status ModelSpec::Validate() const {
  TANDEM_RETURN_IF_ERROR(ValidateSizes());
  TANDEM_RETURN_IF_ERROR(ValidateGroups());
  return CheckRopes(*this);
}

HeadSizes ModelSpec::HeadsOf(uint32_t layer) const {
  for (const KvGroupSpec& group : kv_groups) {
    if (!group.heads.has_value()) continue;
    const bool has = std::binary_search(group.layers.begin(), group.layers.end(), layer);
    if (has || Reads(group, layer)) return *group.heads;
  }
  return {num_kv_heads, head_dim, value_dim};
}

bool ModelSpec::HasCache(uint32_t layer) const {
  if (IsRecurrent(layer)) return false;
  return std::none_of(kv_groups.begin(), kv_groups.end(),
                      [&](const KvGroupSpec& group) { return Reads(group, layer); });
}

}  // namespace tandem::model
