#include "common/model/architecture.h"

#include "common/model/tensor_tables.h"

namespace tandem::model {
namespace {

constexpr Architecture kArchitectures[] = {
    {.name = "llama", .tensors = kLlamaTensors, .normalizes_experts = true},
    {.name = "qwen2", .tensors = kLlamaTensors, .pairing = RopePairing::kHalves},
    {.name = "qwen3",
     .tensors = kLlamaTensors,
     .pairing = RopePairing::kHalves,
     .requires_qk_norm = true},
    {.name = "qwen2moe",
     .tensors = kQwen2MoeTensors,
     .pairing = RopePairing::kHalves,
     .shares_experts = true},
    {.name = "qwen3moe",
     .tensors = kLlamaTensors,
     .pairing = RopePairing::kHalves,
     .requires_qk_norm = true,
     .normalizes_experts = true},
    {.name = "gpt2",
     .tensors = kGpt2Tensors,
     .norm = NormKind::kLayer,
     .activation = ActivationKind::kGelu,
     .gated_ffn = false,
     .learned_positions = true},
    {.name = "phi3", .tensors = kPhi3Tensors, .pairing = RopePairing::kHalves, .window_period = 1},
    {.name = "deepseek2",
     .tensors = kDeepseek2Tensors,
     .latent_attention = true,
     .shares_experts = true},
    {.name = "gpt-oss",
     .tensors = kGptOssTensors,
     .pairing = RopePairing::kHalves,
     .activation = ActivationKind::kClampedSwiGlu,
     .normalizes_experts = true,
     .window_period = 2},
    {.name = "gemma2",
     .tensors = kGemmaTensors,
     .pairing = RopePairing::kHalves,
     .activation = ActivationKind::kGelu,
     .post_norms = true,
     .scaled_embedding = true,
     .window_period = 2,
     .layers_with_hidden_scale = 46},
    {.name = "gemma3",
     .tensors = kGemmaTensors,
     .pairing = RopePairing::kHalves,
     .activation = ActivationKind::kGelu,
     .requires_qk_norm = true,
     .post_norms = true,
     .scaled_embedding = true,
     .window_period = 6,
     .window_rope_base = 10000.0f,
     .layers_with_hidden_scale = 62},
    {.name = "gemma4",
     .tensors = kGemma4Tensors,
     .pairing = RopePairing::kHalves,
     .activation = ActivationKind::kGelu,
     .requires_qk_norm = true,
     .post_norms = true,
     .value_norm = true,
     .scaled_embedding = true,
     .normalizes_experts = true,
     .experts_beside_dense = true,
     .listed_windows = true,
     .attention_scale = 1.0f,
     .logit_softcap = 30.0f,
     .window_rope_base = 10000.0f},
    {.name = "qwen3next",
     .tensors = kQwen3NextTensors,
     .pairing = RopePairing::kHalves,
     .requires_qk_norm = true,
     .delta_net = DeltaNetHeads::kGrouped,
     .normalizes_experts = true,
     .shares_experts = true},
    {.name = "qwen35",
     .tensors = kQwen35Tensors,
     .pairing = RopePairing::kHalves,
     .requires_qk_norm = true,
     .delta_net = DeltaNetHeads::kStrided,
     .sectioned_rope = true},
    {.name = "qwen35moe",
     .tensors = kQwen35Tensors,
     .pairing = RopePairing::kHalves,
     .requires_qk_norm = true,
     .delta_net = DeltaNetHeads::kStrided,
     .sectioned_rope = true,
     .normalizes_experts = true,
     .shares_experts = true},
};

}  // namespace

std::span<const Architecture> Architectures() { return kArchitectures; }

const Architecture* FindArchitecture(std::string_view name) {
  for (const Architecture& row : kArchitectures) {
    if (row.name == name) return &row;
  }
  return nullptr;
}

}  // namespace tandem::model
