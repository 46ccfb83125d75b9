// ModelSpec: the parameters of a model's mathematics, read from GGUF metadata and tensors by the
// architecture's row of the table (architecture.h). Plain data: printable, comparable, no behaviour
// depends on a name.
#ifndef TANDEM_COMMON_MODEL_SPEC_H_
#define TANDEM_COMMON_MODEL_SPEC_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "common/model/feature.h"

namespace tandem::model {

// How RoPE pairs dimensions: (2i, 2i+1) or (i, i + rot/2).
enum class RopePairing { kAdjacent, kHalves };

// kNtk raises the base so that the slowest pair rotates `factor` times slower. Long-rope is kNone
// with factors per pair.
enum class RopeScalingKind { kNone, kLinear, kNtk, kYarn };
inline constexpr std::pair<RopeScalingKind, const char*> kRopeScalingNames[] = {
    {RopeScalingKind::kNone, "none"},
    {RopeScalingKind::kLinear, "linear"},
    {RopeScalingKind::kNtk, "ntk"},
    {RopeScalingKind::kYarn, "yarn"}};
std::string_view Name(RopeScalingKind kind);

// RoPE: maps positions to angles. `inv_freq` already has the base, the scaling and the file's
// factor tensor folded in: angle(pos, i) = pos * inv_freq[i]; cos and sin are multiplied by
// `magnitude`.
struct RopeSpec {
  RopePairing pairing = RopePairing::kAdjacent;
  uint32_t rotary_dims = 0;  // dims of a head that rotate; even; 0: positions do not rotate
  float base = 10000.0f;
  RopeScalingKind scaling = RopeScalingKind::kNone;
  float factor = 1.0f;
  uint32_t original_context = 0;
  // YaRN's bounds, in rotations over the original context: pairs that rotate more often than the
  // first keep their frequency, those that rotate less often than the second are fully
  // interpolated. The defaults are the paper's.
  float beta_fast = 32.0f;
  float beta_slow = 1.0f;
  float magnitude = 1.0f;
  std::vector<float> inv_freq;  // [rotary_dims / 2]
  bool operator==(const RopeSpec&) const = default;
};

// Queries are multiplied by 1 + scale * ln(1 + floor((position + offset) / length)) after RoPE, so
// that attention does not flatten over long contexts.
struct TemperatureSpec {
  float scale = 0.0f;
  uint32_t length = 0;
  uint32_t offset = 0;
  bool without_rope_only = false;  // only in layers without RoPE
  bool operator==(const TemperatureSpec&) const = default;
};

// The heads of K and V: what a row of a layer's cache consists of.
struct HeadSizes {
  uint32_t num_kv_heads = 0;  // divides the query heads
  uint32_t head_dim = 0;      // of K and Q
  uint32_t value_dim = 0;     // of V; equals head_dim except with MLA
  bool operator==(const HeadSizes&) const = default;
};

// A layer without a cache: it reads the one of an earlier layer.
struct CacheReader {
  uint32_t layer = 0;
  uint32_t source = 0;
  bool operator==(const CacheReader&) const = default;
};

// KV groups of a model: one that sees everything, one with a window.
inline constexpr size_t kMaxKvGroups = 2;

// One KV group: layers whose cache has the same row and window, sharing block tables.
struct KvGroupSpec {
  uint32_t window_tokens = 0;          // 0: full attention
  std::vector<uint32_t> layers;        // with a cache of their own; ascending
  std::optional<HeadSizes> heads{};    // if different from the model's
  std::vector<CacheReader> readers{};  // ascending by layer
  bool chunked = false;  // a token sees its chunk of window_tokens up to itself (Llama 4)
  bool operator==(const KvGroupSpec&) const = default;
};

enum class NormKind { kRms, kLayer };

// How the states of a text's tokens become its embedding; the values are those of files.
enum class PoolingType : uint32_t { kNone, kMean, kCls, kLast };

enum class ActivationKind { kSilu, kGelu, kClampedSwiGlu };

// Multi-head latent attention (DeepSeek-V2, https://arxiv.org/abs/2405.04434, section 2.1). The
// cache has one row per token, compressed K and V and then the rotated part of K, which all heads
// share: ModelSpec has num_kv_heads 1, head_dim kv_rank + rope_dims, value_dim kv_rank.
struct MlaSpec {
  uint32_t q_rank = 0;  // 0: queries are not compressed
  uint32_t kv_rank = 0;
  uint32_t rope_dims = 0;   // of a query head, its last
  uint32_t nope_dims = 0;   // of a query head, its first
  uint32_t value_dims = 0;  // of a head, after decompression
  bool operator==(const MlaSpec&) const = default;
};

// A mixture of experts in place of the FFN, from layer `first_layer` on in every layer l of which
// `period` divides l + 1. Routing fields: see kernels::RouteParams.
struct MoeSpec {
  uint32_t num_experts = 0;
  uint32_t experts_per_token = 0;
  uint32_t ffn_size = 0;         // of one expert
  uint32_t shared_ffn_size = 0;  // of the shared experts together; 0: none
  uint32_t first_layer = 0;      // layers before it are dense
  // The layer keeps its dense FFN and adds the output of the experts to its output, each between
  // two norms; the router reads the residual, RMS-normed (Gemma 4).
  bool beside_dense = false;
  uint32_t period = 1;
  bool weighs_input = false;  // the router's weight multiplies an expert's input, not its output
  bool sigmoid = false;
  bool normalize = false;
  float scale = 1.0f;
  uint32_t groups = 1;
  uint32_t groups_kept = 1;
  uint32_t group_top = 1;
  bool operator==(const MoeSpec&) const = default;
};

// Layers of a gated delta net (https://arxiv.org/abs/2412.06464) in place of attention. They have
// no KV cache but a state of a fixed size per sequence: see kernels::ShortConvParams and
// kernels::GatedDeltaRuleParams.
struct DeltaNetSpec {
  static constexpr uint32_t kMaxConvTaps = 16;
  uint32_t key_heads = 0;    // also the query heads
  uint32_t value_heads = 0;  // a multiple of key_heads
  uint32_t head_dim = 0;     // of keys and of values
  uint32_t conv_taps = 0;    // at most kMaxConvTaps
  // Value head h has key head h % key_heads; otherwise h / (value_heads / key_heads).
  bool strided_heads = false;
  std::vector<uint32_t> layers;  // ascending
  bool operator==(const DeltaNetSpec&) const = default;
};

struct ModelSpec {
  std::string architecture;  // general.architecture
  std::string name;          // general.name, may be empty
  std::string quantization;  // such as "Q4_K_M" or "Q8_0", for display

  uint32_t num_layers = 0;
  // Blocks after the last layer, which predict further tokens (NextN, multi-token prediction). The
  // first of them is the draft head. Unless it is asked for, none is loaded.
  uint32_t num_draft_layers = 0;
  bool has_draft_head = false;  // it is loaded, as layer num_layers
  uint32_t hidden_size = 0;
  uint32_t num_heads = 0;                 // query heads
  uint32_t num_kv_heads = 0;              // divides num_heads
  uint32_t head_dim = 0;                  // of K and Q
  uint32_t value_dim = 0;                 // of V; equals head_dim except with MLA
  uint32_t ffn_size = 0;                  // of dense layers; the largest if they differ
  std::vector<uint32_t> layer_ffn_sizes;  // of every layer, if they differ
  uint32_t vocab_size = 0;
  uint32_t context_length = 0;
  PoolingType pooling = PoolingType::kNone;

  NormKind norm = NormKind::kRms;
  float norm_epsilon = 1e-5f;
  ActivationKind activation = ActivationKind::kSilu;
  bool gated_ffn = true;           // f(gate) * up; otherwise f(up)
  bool joint_qk_norm = false;      // the norms of q and k run over all heads together
  bool post_norms = false;         // norms after attention and FFN too (Gemma 2)
  bool learned_positions = false;  // a table of positions is added to the embedding (GPT-2)
  bool value_norm = false;         // heads of V are RMS-normed, without a weight (Gemma 4)
  float embedding_scale = 1.0f;
  float attention_scale = 0.0f;            // usually 1 / sqrt(head_dim)
  float attention_softcap = 0.0f;          // 0: none
  float logit_softcap = 0.0f;              // 0: none
  uint32_t layer_input_size = 0;           // of per-layer embeddings (Gemma 3n, Gemma 4); 0: none
  std::vector<float> layer_output_scales;  // the residual is multiplied by it; empty: none
  // By layer: V is the projection of K, before its norm and RoPE. Empty: in none.
  std::vector<bool> values_are_keys;
  RopeSpec rope;
  uint32_t unrotated_period = 0;  // layer l has no RoPE if it divides l + 1; 0: every layer has it
  std::optional<RopeSpec> window_rope;  // of layers with a window, if different (Gemma 3)
  // In layers with RoPE q and k are divided by their RMS after it, per head.
  bool norms_after_rope = false;
  std::optional<TemperatureSpec> temperature;
  std::optional<MlaSpec> mla;
  std::optional<MoeSpec> moe;
  std::optional<DeltaNetSpec> delta_net;

  FeatureSet features;

  // Every layer but recurrent ones, and the draft head, is in exactly one.
  std::vector<KvGroupSpec> kv_groups;

  bool operator==(const ModelSpec&) const = default;

  bool Has(Feature feature) const { return features.Has(feature); }
  uint32_t NumLoadedLayers() const { return num_layers + (has_draft_head ? 1 : 0); }
  bool IsDraft(uint32_t layer) const { return layer >= num_layers; }
  // The draft head is dense only if all layers are.
  bool IsMoe(uint32_t layer) const {
    if (!moe.has_value() || IsDraft(layer)) return moe.has_value();
    return layer >= moe->first_layer && (layer + 1) % moe->period == 0;
  }
  uint32_t FfnSize(uint32_t layer) const {
    return layer < layer_ffn_sizes.size() ? layer_ffn_sizes[layer] : ffn_size;
  }
  HeadSizes HeadsOf(const KvGroupSpec& group) const {
    return group.heads.value_or(HeadSizes{num_kv_heads, head_dim, value_dim});
  }
  // Of the layer's group.
  HeadSizes HeadsOf(uint32_t layer) const;
  bool ValuesAreKeys(uint32_t layer) const {
    return layer < values_are_keys.size() && values_are_keys[layer];
  }
  // Whether the layer writes a KV cache: recurrent layers do not, nor do those that read an earlier
  // layer's (CacheReader).
  bool HasCache(uint32_t layer) const;

  // Whether the layer has a recurrent state instead of a KV cache.
  bool IsRecurrent(uint32_t layer) const;
  // Whether RoPE applies in the layer, if the model has it.
  bool Rotates(uint32_t layer) const {
    return unrotated_period == 0 || (layer + 1) % unrotated_period != 0;
  }

  // Internal consistency: sizes positive and bounded, heads divisible, layers covered.
  absl::Status Validate() const;
  // Parts of it, in the order in which a reader allocates by what they bound.
  absl::Status ValidateSizes() const;
  absl::Status ValidateGroups() const;
};

}  // namespace tandem::model

#endif  // TANDEM_COMMON_MODEL_SPEC_H_
