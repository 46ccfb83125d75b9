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

struct Architecture {
  std::string_view name;  // general.architecture
  std::span<const TensorRow> tensors;
  RopePairing pairing = RopePairing::kAdjacent;
  NormKind norm = NormKind::kRms;
  ActivationKind activation = ActivationKind::kSilu;
  bool gated_ffn = true;
  bool requires_qk_norm = false;  // the model has no other form
  bool post_norms = false;
  bool learned_positions = false;  // instead of RoPE
  bool value_norm = false;         // layers without a V projection take K's
  bool latent_attention = false;   // MLA
  DeltaNetHeads delta_net = DeltaNetHeads::kNone;
  bool sectioned_rope = false;      // the file divides the rotated pairs into sections
  bool scaled_embedding = false;    // times sqrt(hidden)
  bool normalizes_experts = false;  // if the file does not say
  bool shares_experts = false;      // some experts process every token
  bool experts_beside_dense = false;
  bool listed_windows = false;   // the file lists the layers with a window
  float attention_scale = 0.0f;  // if the file does not say; 0: 1 / sqrt(head size)
  float logit_softcap = 0.0f;    // if the file does not say
  // Layer l has the file's attention.sliding_window unless (l + 1) is a multiple of this. 0: no
  // layer has a window; 1: every layer has it.
  uint32_t window_period = 0;
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
