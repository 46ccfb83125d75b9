// The registry of metadata keys that Tandem reads. Keys that begin with "{arch}" carry the
// architecture's name in the file.
//
// Names: https://github.com/ggml-org/ggml/blob/master/docs/gguf.md
#ifndef TANDEM_COMMON_GGUF_KEYS_H_
#define TANDEM_COMMON_GGUF_KEYS_H_

#include <string>
#include <string_view>

namespace tandem::gguf {

namespace keys {

inline constexpr std::string_view kArchitecture = "general.architecture";
inline constexpr std::string_view kType = "general.type";
inline constexpr std::string_view kName = "general.name";
inline constexpr std::string_view kAlignment = "general.alignment";
inline constexpr std::string_view kFileType = "general.file_type";

inline constexpr std::string_view kAdapterType = "adapter.type";
inline constexpr std::string_view kAdapterLoraAlpha = "adapter.lora.alpha";
inline constexpr std::string_view kAdapterInvocation = "adapter.alora.invocation_tokens";

inline constexpr std::string_view kPoolingType = "{arch}.pooling_type";
inline constexpr std::string_view kContextLength = "{arch}.context_length";
inline constexpr std::string_view kEmbeddingLength = "{arch}.embedding_length";
inline constexpr std::string_view kEmbeddingLengthPerLayer =
    "{arch}.embedding_length_per_layer_input";
inline constexpr std::string_view kBlockCount = "{arch}.block_count";
inline constexpr std::string_view kNextnPredictLayers = "{arch}.nextn_predict_layers";
inline constexpr std::string_view kFeedForwardLength = "{arch}.feed_forward_length";
inline constexpr std::string_view kExpertCount = "{arch}.expert_count";
inline constexpr std::string_view kExpertUsedCount = "{arch}.expert_used_count";
inline constexpr std::string_view kExpertFeedForwardLength = "{arch}.expert_feed_forward_length";
inline constexpr std::string_view kExpertSharedFeedForwardLength =
    "{arch}.expert_shared_feed_forward_length";
inline constexpr std::string_view kExpertSharedCount = "{arch}.expert_shared_count";
inline constexpr std::string_view kExpertWeightsScale = "{arch}.expert_weights_scale";
inline constexpr std::string_view kExpertWeightsNorm = "{arch}.expert_weights_norm";
inline constexpr std::string_view kExpertGatingFunction = "{arch}.expert_gating_func";
inline constexpr std::string_view kExpertGroupCount = "{arch}.expert_group_count";
inline constexpr std::string_view kExpertGroupUsedCount = "{arch}.expert_group_used_count";
inline constexpr std::string_view kLeadingDenseBlockCount = "{arch}.leading_dense_block_count";
inline constexpr std::string_view kInterleaveMoeLayerStep = "{arch}.interleave_moe_layer_step";
inline constexpr std::string_view kAttnSoftcap = "{arch}.attn_logit_softcapping";
inline constexpr std::string_view kFinalSoftcap = "{arch}.final_logit_softcapping";
inline constexpr std::string_view kHeadCount = "{arch}.attention.head_count";
inline constexpr std::string_view kHeadCountKv = "{arch}.attention.head_count_kv";
inline constexpr std::string_view kKeyLength = "{arch}.attention.key_length";
inline constexpr std::string_view kValueLength = "{arch}.attention.value_length";
inline constexpr std::string_view kRmsEpsilon = "{arch}.attention.layer_norm_rms_epsilon";
inline constexpr std::string_view kLayerNormEpsilon = "{arch}.attention.layer_norm_epsilon";
inline constexpr std::string_view kAttentionScale = "{arch}.attention.scale";
inline constexpr std::string_view kTemperatureScale = "{arch}.attention.temperature_scale";
inline constexpr std::string_view kTemperatureLength = "{arch}.attention.temperature_length";
inline constexpr std::string_view kSlidingWindow = "{arch}.attention.sliding_window";
inline constexpr std::string_view kSlidingWindowPattern = "{arch}.attention.sliding_window_pattern";
inline constexpr std::string_view kKeyLengthSwa = "{arch}.attention.key_length_swa";
inline constexpr std::string_view kValueLengthSwa = "{arch}.attention.value_length_swa";
inline constexpr std::string_view kSharedKvLayers = "{arch}.attention.shared_kv_layers";
inline constexpr std::string_view kQueryRank = "{arch}.attention.q_lora_rank";
inline constexpr std::string_view kKvRank = "{arch}.attention.kv_lora_rank";
inline constexpr std::string_view kKeyLengthMla = "{arch}.attention.key_length_mla";
inline constexpr std::string_view kValueLengthMla = "{arch}.attention.value_length_mla";
inline constexpr std::string_view kCausal = "{arch}.attention.causal";
inline constexpr std::string_view kRopeDimensionCount = "{arch}.rope.dimension_count";
inline constexpr std::string_view kRopeFreqBase = "{arch}.rope.freq_base";
inline constexpr std::string_view kRopeDimensionCountSwa = "{arch}.rope.dimension_count_swa";
inline constexpr std::string_view kRopeFreqBaseSwa = "{arch}.rope.freq_base_swa";
inline constexpr std::string_view kRopeScaleLinear =
    "{arch}.rope.scale_linear";  // before scaling.*
inline constexpr std::string_view kRopeScalingType = "{arch}.rope.scaling.type";
inline constexpr std::string_view kRopeScalingFactor = "{arch}.rope.scaling.factor";
inline constexpr std::string_view kRopeScalingAttnFactor = "{arch}.rope.scaling.attn_factor";
inline constexpr std::string_view kRopeScalingYarnLogMultiplier =
    "{arch}.rope.scaling.yarn_log_multiplier";
inline constexpr std::string_view kRopeScalingYarnBetaFast = "{arch}.rope.scaling.yarn_beta_fast";
inline constexpr std::string_view kRopeScalingYarnBetaSlow = "{arch}.rope.scaling.yarn_beta_slow";
inline constexpr std::string_view kRopeScalingOriginalContext =
    "{arch}.rope.scaling.original_context_length";

inline constexpr std::string_view kRopeSections = "{arch}.rope.dimension_sections";
// Layers with a recurrent state.
inline constexpr std::string_view kRecurrentLayers = "{arch}.attention.recurrent_layers";
inline constexpr std::string_view kFullAttentionInterval = "{arch}.full_attention_interval";
inline constexpr std::string_view kConvKernel = "{arch}.ssm.conv_kernel";
inline constexpr std::string_view kStateSize = "{arch}.ssm.state_size";
inline constexpr std::string_view kStateGroupCount = "{arch}.ssm.group_count";
inline constexpr std::string_view kTimeStepRank = "{arch}.ssm.time_step_rank";
inline constexpr std::string_view kStateInnerSize = "{arch}.ssm.inner_size";

inline constexpr std::string_view kSplitNumber = "split.no";
inline constexpr std::string_view kSplitCount = "split.count";
inline constexpr std::string_view kSplitTensors = "split.tensors.count";

inline constexpr std::string_view kTokens = "tokenizer.ggml.tokens";

}  // namespace keys

// `key` with "{arch}" replaced: KeyFor(keys::kBlockCount, "llama") is "llama.block_count".
std::string KeyFor(std::string_view key, std::string_view architecture);

}  // namespace tandem::gguf

#endif  // TANDEM_COMMON_GGUF_KEYS_H_
