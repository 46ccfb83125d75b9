// The supported architectures, as rows of a table: their mathematics and their tensors.
//
// A new architecture is a new row; new code is only for new mathematics (docs/adding-a-model.md).
// Plain constant data, thread-safe.
#ifndef TANDEM_COMMON_MODEL_ARCHITECTURE_H_
#define TANDEM_COMMON_MODEL_ARCHITECTURE_H_

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "common/model/spec.h"
#include "common/model/tensor_row.h"

namespace tandem::model {

// Which key head a value head of a delta net has: see DeltaNetSpec. kNone: there is no delta net.
enum class DeltaNetHeads { kNone, kGrouped, kStrided };

// What a file's yarn_log_multiplier m does. Converters write DeepSeek's 0.1 mscale_all_dim,
// Mistral's mscale_all_dim itself.
enum class LogMultiplier {
  kIgnored,
  kScalesScores,  // (1 + m ln(factor))^2 times the scores; cos and sin stay as they are
  kDivides,       // the magnitude of the rotation, 1 + 0.1 ln(factor), by 1 + 0.1 m ln(factor)
};

struct Architecture {
  std::string_view name;  // general.architecture
  std::span<const TensorRow> tensors;
  RopePairing pairing = RopePairing::kAdjacent;
  NormKind norm = NormKind::kRms;
  ActivationKind activation = ActivationKind::kSilu;
  bool gated_ffn = true;
  bool requires_qk_norm = false;  // the model has no other form
  bool joint_qk_norm = false;     // over all heads together
  bool post_norms = false;
  bool learned_positions = false;  // instead of RoPE
  bool value_norm = false;         // layers without a V projection take K's
  bool latent_attention = false;   // MLA
  DeltaNetHeads delta_net = DeltaNetHeads::kNone;
  bool sectioned_rope = false;      // the file divides the rotated pairs into sections
  bool scaled_embedding = false;    // times sqrt(hidden)
  bool sigmoid_experts = false;     // scores are sigmoids, if the file does not say
  bool normalizes_experts = false;  // if the file does not say
  bool shares_experts = false;      // some experts process every token
  bool experts_beside_dense = false;
  bool listed_windows = false;     // the file lists the layers with a window
  float attention_scale = 0.0f;    // if the file does not say; 0: 1 / sqrt(head size)
  float attention_softcap = 0.0f;  // if the file does not say; so is the next
  float logit_softcap = 0.0f;
  uint32_t shared_experts = 0;  // their number, if the file does not say
  bool weighs_expert_input = false;
  // Layer l has the file's attention.sliding_window unless (l + 1) is a multiple of this. 0: no
  // layer has a window; 1: every layer has it.
  uint32_t window_period = 0;
  // The window if the file does not say; 0: then there is none.
  uint32_t default_window = 0;
  bool chunked_windows = false;
  LogMultiplier log_multiplier = LogMultiplier::kIgnored;
  // Layer l has no RoPE if this divides l + 1. 0: every layer has it.
  uint32_t unrotated_period = 0;
  // Layers with RoPE norm q and k after it, except in models with this many experts.
  bool norms_after_rope = false;
  uint32_t experts_without_norm = 0;
  // What the file does not say of it. A length of 0: the original context of RoPE.
  TemperatureSpec temperature{};
  // Layers with a window use this RoPE base, unscaled; 0: the same as the others.
  float window_rope_base = 0.0f;
  // With this many layers the query scale is 1 / sqrt(hidden / heads): a member of the family that
  // the file does not distinguish otherwise.
  uint32_t layers_with_hidden_scale = 0;
};

std::span<const Architecture> Architectures();
// Null for a name that is not in the table.
const Architecture* FindArchitecture(std::string_view name);

}  // namespace tandem::model

#endif  // TANDEM_COMMON_MODEL_ARCHITECTURE_H_
