// ModelSpec: everything the runtime knows about a model's mathematics, read from GGUF metadata and
// tensors by the architecture's row of the table (architecture.h). Plain data: printable,
// comparable, no behaviour by name.
#ifndef TANDEM_COMMON_MODEL_SPEC_H_
#define TANDEM_COMMON_MODEL_SPEC_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"

namespace tandem::model {

// How RoPE pairs dimensions: (2i, 2i+1) or (i, i + rot/2).
enum class RopePairing { kAdjacent, kHalves };

enum class RopeScalingKind { kNone, kLinear, kYarn };

// Positions to angles. `inv_freq` already has the base, the scaling and the file's factor tensor
// folded in: angle(pos, i) = pos * inv_freq[i]; cos and sin are multiplied by `magnitude`.
struct RopeSpec {
  RopePairing pairing = RopePairing::kAdjacent;
  uint32_t rotary_dims = 0;  // leading dims of a head that rotate; even
  float base = 10000.0f;
  RopeScalingKind scaling = RopeScalingKind::kNone;
  float factor = 1.0f;
  uint32_t original_context = 0;
  float magnitude = 1.0f;
  std::vector<float> inv_freq;  // [rotary_dims / 2]
  bool operator==(const RopeSpec&) const = default;
};

// One KV group: layers whose cache has the same row and window, sharing block tables.
struct KvGroupSpec {
  uint32_t window_tokens = 0;  // 0: full attention
  std::vector<uint32_t> layers;
  bool operator==(const KvGroupSpec&) const = default;
};

struct ModelSpec {
  std::string architecture;  // general.architecture
  std::string name;          // general.name, may be empty
  std::string quantization;  // such as "Q4_K_M" or "Q8_0", for people

  uint32_t num_layers = 0;
  uint32_t hidden_size = 0;
  uint32_t num_heads = 0;     // query heads
  uint32_t num_kv_heads = 0;  // divides num_heads
  uint32_t head_dim = 0;      // of K and Q
  uint32_t value_dim = 0;     // of V; equals head_dim in this version
  uint32_t ffn_size = 0;
  uint32_t vocab_size = 0;
  uint32_t context_length = 0;

  float norm_epsilon = 1e-5f;
  float attention_scale = 0.0f;  // usually 1 / sqrt(head_dim)
  RopeSpec rope;

  // Probed from the file's tensors, never guessed from the architecture's name.
  bool has_qkv_bias = false;
  bool has_output_bias = false;   // attn_output.bias
  bool has_qk_norm = false;       // per-head RMS norm of q and k before RoPE
  bool tied_embeddings = false;   // no output.weight: the head reads token_embd
  bool has_rope_factors = false;  // rope_freqs.weight, already folded into rope.inv_freq

  std::vector<KvGroupSpec> kv_groups;  // every layer is in exactly one

  bool operator==(const ModelSpec&) const = default;

  // Internal consistency: sizes positive and bounded, heads divisible, layers covered.
  absl::Status Validate() const;
  // The part of it that needs no rope tables and KV groups: what a reader checks before it
  // allocates by these sizes.
  absl::Status ValidateSizes() const;
};

}  // namespace tandem::model

#endif  // TANDEM_COMMON_MODEL_SPEC_H_
