// The tensor tables of the architectures (architecture.cc), composed of shared parts.
//
// Names and shapes: as written by llama.cpp's converter,
// https://github.com/ggml-org/llama.cpp/blob/master/gguf-py/gguf/constants.py.
#ifndef TANDEM_COMMON_MODEL_TENSOR_TABLES_H_
#define TANDEM_COMMON_MODEL_TENSOR_TABLES_H_

#include <array>
#include <cstddef>

#include "common/model/tensor_row.h"

namespace tandem::model {

namespace tables {

inline constexpr Extent kOne{Dim::kOne, Dim::kOne};
inline constexpr Extent kHidden{Dim::kHidden, Dim::kOne};
inline constexpr Extent kVocab{Dim::kVocab, Dim::kOne};
inline constexpr Extent kContext{Dim::kContext, Dim::kOne};
inline constexpr Extent kFfn{Dim::kFfn, Dim::kOne};
inline constexpr Extent kHeads{Dim::kHeads, Dim::kOne};
inline constexpr Extent kHeadDim{Dim::kHeadDim, Dim::kOne};
inline constexpr Extent kRopePairs{Dim::kRopePairs, Dim::kOne};
inline constexpr Extent kQueries{Dim::kHeads, Dim::kHeadDim};
inline constexpr Extent kKeys{Dim::kKvHeads, Dim::kHeadDim};
inline constexpr Extent kValues{Dim::kKvHeads, Dim::kValueDim};
inline constexpr Extent kAttention{Dim::kHeads, Dim::kValueDim};
inline constexpr Extent kExperts{Dim::kExperts, Dim::kOne};
inline constexpr Extent kExpertFfn{Dim::kExpertFfn, Dim::kOne};
inline constexpr Extent kSharedFfn{Dim::kSharedFfn, Dim::kOne};
inline constexpr Extent kQueryRank{Dim::kQueryRank, Dim::kOne};
inline constexpr Extent kKvRank{Dim::kKvRank, Dim::kOne};
inline constexpr Extent kMlaRope{Dim::kMlaRope, Dim::kOne};
inline constexpr Extent kMlaNope{Dim::kMlaNope, Dim::kOne};
inline constexpr Extent kMlaQueries{Dim::kHeads, Dim::kMlaQuery};
inline constexpr Extent kMlaLatents{Dim::kHeads, Dim::kMlaLatent};
inline constexpr Extent kMlaKeys{Dim::kHeads, Dim::kKvRank};
inline constexpr Extent kMlaValues{Dim::kHeads, Dim::kMlaValue};

inline constexpr Extent kDraftInputs{Dim::kDraftInputs, Dim::kHidden};
inline constexpr Extent kLayerInput{Dim::kLayerInput, Dim::kOne};
inline constexpr Extent kAllLayerInputs{Dim::kLayers, Dim::kLayerInput};
inline constexpr Extent kDeltaKeys{Dim::kDeltaKeyHeads, Dim::kDeltaHeadDim};
inline constexpr Extent kDeltaValues{Dim::kDeltaValueHeads, Dim::kDeltaHeadDim};
inline constexpr Extent kDeltaChannels{Dim::kDeltaHeads, Dim::kDeltaHeadDim};
inline constexpr Extent kDeltaValueHeads{Dim::kDeltaValueHeads, Dim::kOne};
inline constexpr Extent kDeltaHeadDim{Dim::kDeltaHeadDim, Dim::kOne};
// By key head.
inline constexpr Extent kDeltaValuesByKey{Dim::kDeltaKeyHeads, Dim::kDeltaDimsOfKey};
inline constexpr Extent kDeltaHeadsByKey{Dim::kDeltaKeyHeads, Dim::kDeltaValuesOfKey};
inline constexpr Extent kConvTaps{Dim::kConvTaps, Dim::kOne};

inline constexpr ShardRule kWhole = ShardRule::kReplicated;
inline constexpr ShardRule kRows = ShardRule::kRows;
inline constexpr ShardRule kCols = ShardRule::kCols;
inline constexpr ShardRule kExpertRows = ShardRule::kExpertRows;
inline constexpr ShardRule kExpertCols = ShardRule::kExpertCols;
inline constexpr ShardRule kExpertWhole = ShardRule::kExpertWhole;

inline constexpr Layers kDense = Layers::kDense;
inline constexpr Layers kMixture = Layers::kMixture;
inline constexpr Layers kCached = Layers::kCached;
inline constexpr Layers kOwnValues = Layers::kValues;
inline constexpr Layers kFull = Layers::kAttention;
inline constexpr Layers kRecurrent = Layers::kRecurrent;
inline constexpr Layers kDraft = Layers::kDraft;
inline constexpr bool kInterleaved = true;

inline constexpr TensorRow kEnds[] = {
    {"token_embd.weight", Role::kTokenEmbedding, kVocab, kHidden, kRows},
    {"output_norm.weight", Role::kOutputNorm, kOne, kHidden, kWhole},
    {"output.weight", Role::kOutput, kVocab, kHidden, kRows, Feature::kUntiedHead},
};

inline constexpr TensorRow kAttnNorm[] = {
    {"blk.{L}.attn_norm.weight", Role::kAttnNorm, kOne, kHidden, kWhole},
};
inline constexpr TensorRow kFfnNorm[] = {
    {"blk.{L}.ffn_norm.weight", Role::kFfnNorm, kOne, kHidden, kWhole},
};
// The same norm by another name.
inline constexpr TensorRow kFfnNormAfterAttention[] = {
    {"blk.{L}.post_attention_norm.weight", Role::kFfnNorm, kOne, kHidden, kWhole},
};

inline constexpr TensorRow kAttention3[] = {
    {"blk.{L}.attn_q.weight", Role::kAttnQ, kQueries, kHidden, kRows},
    {"blk.{L}.attn_k.weight", Role::kAttnK, kKeys, kHidden, kRows},
    {"blk.{L}.attn_v.weight", Role::kAttnV, kValues, kHidden, kRows},
    {"blk.{L}.attn_q.bias", Role::kAttnQBias, kOne, kQueries, kCols, Feature::kQkvBias},
    {"blk.{L}.attn_k.bias", Role::kAttnKBias, kOne, kKeys, kCols, Feature::kQkvBias},
    {"blk.{L}.attn_v.bias", Role::kAttnVBias, kOne, kValues, kCols, Feature::kQkvBias},
};
// Q, K and V in one tensor.
inline constexpr TensorRow kAttentionFused[] = {
    {"blk.{L}.attn_qkv.weight", Role::kAttnQ, kQueries, kHidden, kRows},
    {"blk.{L}.attn_qkv.weight", Role::kAttnK, kKeys, kHidden, kRows},
    {"blk.{L}.attn_qkv.weight", Role::kAttnV, kValues, kHidden, kRows},
    {"blk.{L}.attn_qkv.bias", Role::kAttnQBias, kOne, kQueries, kCols, Feature::kQkvBias},
    {"blk.{L}.attn_qkv.bias", Role::kAttnKBias, kOne, kKeys, kCols, Feature::kQkvBias},
    {"blk.{L}.attn_qkv.bias", Role::kAttnVBias, kOne, kValues, kCols, Feature::kQkvBias},
};
inline constexpr TensorRow kHeadNorms[] = {
    {"blk.{L}.attn_q_norm.weight", Role::kAttnQNorm, kOne, kHeadDim, kWhole, Feature::kQkNorm},
    {"blk.{L}.attn_k_norm.weight", Role::kAttnKNorm, kOne, kHeadDim, kWhole, Feature::kQkNorm},
};
// Norms over all heads together.
inline constexpr TensorRow kJointHeadNorms[] = {
    {"blk.{L}.attn_q_norm.weight", Role::kAttnQNorm, kOne, kQueries, kCols, Feature::kQkNorm},
    {"blk.{L}.attn_k_norm.weight", Role::kAttnKNorm, kOne, kKeys, kCols, Feature::kQkNorm},
};
inline constexpr TensorRow kAttentionOut[] = {
    {"blk.{L}.attn_output.weight", Role::kAttnOutput, kHidden, kAttention, kCols},
    {"blk.{L}.attn_output.bias", Role::kAttnOutputBias, kOne, kHidden, kWhole,
     Feature::kOutputBias},
};

inline constexpr TensorRow kGatedFfn[] = {
    {"blk.{L}.ffn_gate.weight", Role::kFfnGate, kFfn, kHidden, kRows, Feature::kAlways, kDense},
    {"blk.{L}.ffn_up.weight", Role::kFfnUp, kFfn, kHidden, kRows, Feature::kAlways, kDense},
    {"blk.{L}.ffn_down.weight", Role::kFfnDown, kHidden, kFfn, kCols, Feature::kAlways, kDense},
    {"blk.{L}.ffn_gate.bias", Role::kFfnGateBias, kOne, kFfn, kCols, Feature::kFfnBias, kDense},
    {"blk.{L}.ffn_up.bias", Role::kFfnUpBias, kOne, kFfn, kCols, Feature::kFfnBias, kDense},
    {"blk.{L}.ffn_down.bias", Role::kFfnDownBias, kOne, kHidden, kWhole, Feature::kFfnBias, kDense},
};

inline constexpr TensorRow kMixtureOfExperts[] = {
    {"blk.{L}.ffn_gate_inp.weight", Role::kRouter, kExperts, kHidden, kWhole, Feature::kAlways,
     kMixture},
    {"blk.{L}.ffn_gate_exps.weight", Role::kExpertGate, kExpertFfn, kHidden, kExpertRows,
     Feature::kSeparateExperts, kMixture, Dim::kExperts},
    {"blk.{L}.ffn_up_exps.weight", Role::kExpertUp, kExpertFfn, kHidden, kExpertRows,
     Feature::kSeparateExperts, kMixture, Dim::kExperts},
    {"blk.{L}.ffn_down_exps.weight", Role::kExpertDown, kHidden, kExpertFfn, kExpertCols,
     Feature::kAlways, kMixture, Dim::kExperts},
};
inline constexpr TensorRow kFusedExperts[] = {
    {"blk.{L}.ffn_gate_up_exps.weight", Role::kExpertGate, kExpertFfn, kHidden, kExpertRows,
     Feature::kFusedExperts, kMixture, Dim::kExperts},
    {"blk.{L}.ffn_gate_up_exps.weight", Role::kExpertUp, kExpertFfn, kHidden, kExpertRows,
     Feature::kFusedExperts, kMixture, Dim::kExperts},
};
inline constexpr TensorRow kSharedExperts[] = {
    {"blk.{L}.ffn_gate_shexp.weight", Role::kSharedGate, kSharedFfn, kHidden, kRows,
     Feature::kSharedExperts, kMixture},
    {"blk.{L}.ffn_up_shexp.weight", Role::kSharedUp, kSharedFfn, kHidden, kRows,
     Feature::kSharedExperts, kMixture},
    {"blk.{L}.ffn_down_shexp.weight", Role::kSharedDown, kHidden, kSharedFfn, kCols,
     Feature::kSharedExperts, kMixture},
    {"blk.{L}.ffn_gate_inp_shexp.weight", Role::kSharedWeight, kOne, kHidden, kWhole,
     Feature::kSharedGate, kMixture},
};

inline constexpr TensorRow kRopeFactors[] = {
    {"rope_freqs.weight", Role::kRopeFactors, kOne, kRopePairs, kWhole, Feature::kRopeFactors},
};
inline constexpr TensorRow kLongRopeFactors[] = {
    {"rope_factors_long.weight", Role::kRopeFactors, kOne, kRopePairs, kWhole, Feature::kLongRope},
    {"rope_factors_short.weight", Role::kRopeFactors, kOne, kRopePairs, kWhole, Feature::kLongRope},
};

// Learned positions, LayerNorm with bias, a plain FFN.
inline constexpr TensorRow kGpt2Own[] = {
    {"position_embd.weight", Role::kPositionEmbedding, kContext, kHidden, kWhole},
    {"output_norm.bias", Role::kOutputNormBias, kOne, kHidden, kWhole},
    {"blk.{L}.attn_norm.bias", Role::kAttnNormBias, kOne, kHidden, kWhole},
    {"blk.{L}.ffn_norm.bias", Role::kFfnNormBias, kOne, kHidden, kWhole},
    {"blk.{L}.ffn_up.weight", Role::kFfnUp, kFfn, kHidden, kRows},
    {"blk.{L}.ffn_down.weight", Role::kFfnDown, kHidden, kFfn, kCols},
    {"blk.{L}.ffn_up.bias", Role::kFfnUpBias, kOne, kFfn, kCols, Feature::kFfnBias},
    {"blk.{L}.ffn_down.bias", Role::kFfnDownBias, kOne, kHidden, kWhole, Feature::kFfnBias},
};

// Gate and up in one tensor, gate first.
inline constexpr TensorRow kPhi3Ffn[] = {
    {"blk.{L}.ffn_up.weight", Role::kFfnGate, kFfn, kHidden, kRows},
    {"blk.{L}.ffn_up.weight", Role::kFfnUp, kFfn, kHidden, kRows},
    {"blk.{L}.ffn_down.weight", Role::kFfnDown, kHidden, kFfn, kCols},
};

inline constexpr TensorRow kLatentAttention[] = {
    {"blk.{L}.attn_q.weight", Role::kAttnQ, kMlaQueries, kHidden, kRows, Feature::kPlainQuery},
    {"blk.{L}.attn_q_a.weight", Role::kQueryDown, kQueryRank, kHidden, kWhole, Feature::kQueryRank},
    {"blk.{L}.attn_q_a_norm.weight", Role::kQueryNorm, kOne, kQueryRank, kWhole,
     Feature::kQueryRank},
    {"blk.{L}.attn_q_b.weight", Role::kQueryUp, kMlaQueries, kQueryRank, kRows,
     Feature::kQueryRank},
    {"blk.{L}.attn_kv_a_mqa.weight", Role::kLatentDown, kKvRank, kHidden, kWhole},
    {"blk.{L}.attn_kv_a_mqa.weight", Role::kLatentKeyRope, kMlaRope, kHidden, kWhole},
    {"blk.{L}.attn_kv_a_norm.weight", Role::kLatentNorm, kOne, kKvRank, kWhole},
    {"blk.{L}.attn_kv_b.weight", Role::kLatentUp, kMlaLatents, kKvRank, kRows, Feature::kJointKvB},
    {"blk.{L}.attn_k_b.weight", Role::kLatentKeyUp, kMlaKeys, kMlaNope, kRows, Feature::kSplitKvB},
    {"blk.{L}.attn_v_b.weight", Role::kLatentValueUp, kMlaValues, kKvRank, kRows,
     Feature::kSplitKvB},
    {"blk.{L}.attn_output.weight", Role::kAttnOutput, kHidden, kMlaValues, kCols},
};
inline constexpr TensorRow kSelectionBias[] = {
    {"blk.{L}.exp_probs_b.bias", Role::kSelectionBias, kOne, kExperts, kWhole,
     Feature::kSelectionBias, kMixture},
};

// Sinks, and biases on everything.
inline constexpr TensorRow kGptOssOwn[] = {
    {"blk.{L}.attn_sinks.weight", Role::kAttnSinks, kOne, kHeads, kCols, Feature::kSinks},
    {"blk.{L}.ffn_gate_inp.bias", Role::kRouterBias, kOne, kExperts, kWhole, Feature::kRouterBias,
     kMixture},
    {"blk.{L}.ffn_gate_exps.bias", Role::kExpertGateBias, kOne, kExpertFfn, kExpertCols,
     Feature::kExpertBias, kMixture, Dim::kExperts},
    {"blk.{L}.ffn_up_exps.bias", Role::kExpertUpBias, kOne, kExpertFfn, kExpertCols,
     Feature::kExpertBias, kMixture, Dim::kExperts},
    {"blk.{L}.ffn_down_exps.bias", Role::kExpertDownBias, kOne, kHidden, kExpertWhole,
     Feature::kExpertBias, kMixture, Dim::kExperts},
};

inline constexpr TensorRow kPostNorms[] = {
    {"blk.{L}.post_attention_norm.weight", Role::kAttnPostNorm, kOne, kHidden, kWhole},
    {"blk.{L}.post_ffw_norm.weight", Role::kFfnPostNorm, kOne, kHidden, kWhole},
};

// Layers that read another's cache have no K and V; values without a projection are the keys.
inline constexpr TensorRow kGemma4Own[] = {
    {"rope_freqs.weight", Role::kRopeFactors, kOne, kRopePairs, kWhole},
    {"blk.{L}.attn_q.weight", Role::kAttnQ, kQueries, kHidden, kRows},
    {"blk.{L}.attn_k.weight", Role::kAttnK, kKeys, kHidden, kRows, Feature::kAlways, kCached},
    {"blk.{L}.attn_v.weight", Role::kAttnV, kValues, kHidden, kRows, Feature::kAlways, kOwnValues},
    {"blk.{L}.attn_q_norm.weight", Role::kAttnQNorm, kOne, kHeadDim, kWhole},
    {"blk.{L}.attn_k_norm.weight", Role::kAttnKNorm, kOne, kHeadDim, kWhole, Feature::kAlways,
     kCached},
    {"blk.{L}.ffn_gate.weight", Role::kFfnGate, kFfn, kHidden, kRows},
    {"blk.{L}.ffn_up.weight", Role::kFfnUp, kFfn, kHidden, kRows},
    {"blk.{L}.ffn_down.weight", Role::kFfnDown, kHidden, kFfn, kCols},
    {"blk.{L}.layer_output_scale.weight", Role::kLayerOutputScale, kOne, kOne, kWhole,
     Feature::kLayerOutputScale},
};
// Experts beside the dense FFN: what kMixtureOfExperts does not have.
inline constexpr TensorRow kGemma4Mixture[] = {
    {"blk.{L}.ffn_gate_inp.scale", Role::kRouterNorm, kOne, kHidden, kWhole, Feature::kAlways,
     kMixture, Dim::kOne, /*per_root_hidden=*/true},
    {"blk.{L}.ffn_down_exps.scale", Role::kExpertScale, kOne, kExperts, kWhole,
     Feature::kExpertScale, kMixture},
    {"blk.{L}.pre_ffw_norm_2.weight", Role::kExpertNorm, kOne, kHidden, kWhole, Feature::kAlways,
     kMixture},
    {"blk.{L}.post_ffw_norm_1.weight", Role::kDensePostNorm, kOne, kHidden, kWhole,
     Feature::kAlways, kMixture},
    {"blk.{L}.post_ffw_norm_2.weight", Role::kExpertPostNorm, kOne, kHidden, kWhole,
     Feature::kAlways, kMixture},
};
inline constexpr TensorRow kLayerInputs[] = {
    {"per_layer_token_embd.weight", Role::kLayerEmbedding, kVocab, kAllLayerInputs, kWhole,
     Feature::kLayerInputs},
    {"per_layer_model_proj.weight", Role::kLayerInputProjection, kAllLayerInputs, kHidden, kWhole,
     Feature::kLayerInputs},
    {"per_layer_proj_norm.weight", Role::kLayerInputNorm, kOne, kLayerInput, kWhole,
     Feature::kLayerInputs},
    {"blk.{L}.inp_gate.weight", Role::kLayerInputGate, kLayerInput, kHidden, kWhole,
     Feature::kLayerInputs},
    {"blk.{L}.proj.weight", Role::kLayerInputOut, kHidden, kLayerInput, kWhole,
     Feature::kLayerInputs},
    {"blk.{L}.post_norm.weight", Role::kLayerInputPostNorm, kOne, kHidden, kWhole,
     Feature::kLayerInputs},
};

// Layers of attention with a gate on its output: of each head the rows of Q, then those of the
// gate.
inline constexpr TensorRow kGatedAttention[] = {
    {"blk.{L}.attn_q.weight", Role::kAttnQ, kQueries, kHidden, kRows, Feature::kAlways, kFull,
     Dim::kOne, false, kInterleaved},
    {"blk.{L}.attn_q.weight", Role::kAttnGate, kQueries, kHidden, kRows, Feature::kAlways, kFull,
     Dim::kOne, false, kInterleaved},
    {"blk.{L}.attn_k.weight", Role::kAttnK, kKeys, kHidden, kRows, Feature::kAlways, kFull},
    {"blk.{L}.attn_v.weight", Role::kAttnV, kValues, kHidden, kRows, Feature::kAlways, kFull},
    {"blk.{L}.attn_q_norm.weight", Role::kAttnQNorm, kOne, kHeadDim, kWhole, Feature::kQkNorm,
     kFull},
    {"blk.{L}.attn_k_norm.weight", Role::kAttnKNorm, kOne, kHeadDim, kWhole, Feature::kQkNorm,
     kFull},
    {"blk.{L}.attn_output.weight", Role::kAttnOutput, kHidden, kAttention, kCols, Feature::kAlways,
     kFull},
    {"blk.{L}.post_attention_norm.weight", Role::kFfnNorm, kOne, kHidden, kWhole},
};

// Layers of a gated delta net.
inline constexpr TensorRow kDeltaNet[] = {
    {"blk.{L}.attn_qkv.weight", Role::kDeltaQ, kDeltaKeys, kHidden, kRows, Feature::kDeltaSplitIn,
     kRecurrent},
    {"blk.{L}.attn_qkv.weight", Role::kDeltaK, kDeltaKeys, kHidden, kRows, Feature::kDeltaSplitIn,
     kRecurrent},
    {"blk.{L}.attn_qkv.weight", Role::kDeltaV, kDeltaValues, kHidden, kRows, Feature::kDeltaSplitIn,
     kRecurrent},
    {"blk.{L}.attn_gate.weight", Role::kDeltaGate, kDeltaValues, kHidden, kRows,
     Feature::kDeltaSplitIn, kRecurrent},
    {"blk.{L}.ssm_conv1d.weight", Role::kDeltaConv, kDeltaChannels, kConvTaps, kRows,
     Feature::kAlways, kRecurrent},
    {"blk.{L}.ssm_a", Role::kDeltaDecayRate, kOne, kDeltaValueHeads, kCols, Feature::kAlways,
     kRecurrent},
    {"blk.{L}.ssm_dt.bias", Role::kDeltaDecayBias, kOne, kDeltaValueHeads, kCols, Feature::kAlways,
     kRecurrent},
    {"blk.{L}.ssm_norm.weight", Role::kDeltaNorm, kOne, kDeltaHeadDim, kWhole, Feature::kAlways,
     kRecurrent},
    {"blk.{L}.ssm_out.weight", Role::kDeltaOut, kHidden, kDeltaValues, kCols, Feature::kAlways,
     kRecurrent},
};
inline constexpr TensorRow kDeltaGates[] = {
    {"blk.{L}.ssm_alpha.weight", Role::kDeltaDecay, kDeltaValueHeads, kHidden, kRows,
     Feature::kDeltaSplitGates, kRecurrent},
    {"blk.{L}.ssm_beta.weight", Role::kDeltaWrite, kDeltaValueHeads, kHidden, kRows,
     Feature::kDeltaSplitGates, kRecurrent},
};
// The same with everything of a key head together.
inline constexpr TensorRow kDeltaByKeyHead[] = {
    {"blk.{L}.ssm_in.weight", Role::kDeltaQ, kDeltaKeys, kHidden, kRows, Feature::kDeltaJointIn,
     kRecurrent, Dim::kOne, false, kInterleaved},
    {"blk.{L}.ssm_in.weight", Role::kDeltaK, kDeltaKeys, kHidden, kRows, Feature::kDeltaJointIn,
     kRecurrent, Dim::kOne, false, kInterleaved},
    {"blk.{L}.ssm_in.weight", Role::kDeltaV, kDeltaValuesByKey, kHidden, kRows,
     Feature::kDeltaJointIn, kRecurrent, Dim::kOne, false, kInterleaved},
    {"blk.{L}.ssm_in.weight", Role::kDeltaGate, kDeltaValuesByKey, kHidden, kRows,
     Feature::kDeltaJointIn, kRecurrent, Dim::kOne, false, kInterleaved},
    {"blk.{L}.ssm_ba.weight", Role::kDeltaWrite, kDeltaHeadsByKey, kHidden, kRows,
     Feature::kDeltaJointGates, kRecurrent, Dim::kOne, false, kInterleaved},
    {"blk.{L}.ssm_ba.weight", Role::kDeltaDecay, kDeltaHeadsByKey, kHidden, kRows,
     Feature::kDeltaJointGates, kRecurrent, Dim::kOne, false, kInterleaved},
};

// What a draft head has besides a layer's tensors.
inline constexpr TensorRow kDraftHead[] = {
    {"blk.{L}.nextn.eh_proj.weight", Role::kDraftProjection, kHidden, kDraftInputs, kWhole,
     Feature::kAlways, kDraft},
    {"blk.{L}.nextn.enorm.weight", Role::kDraftEmbeddingNorm, kOne, kHidden, kWhole,
     Feature::kAlways, kDraft},
    {"blk.{L}.nextn.hnorm.weight", Role::kDraftHiddenNorm, kOne, kHidden, kWhole, Feature::kAlways,
     kDraft},
    {"blk.{L}.nextn.shared_head_norm.weight", Role::kDraftOutputNorm, kOne, kHidden, kWhole,
     Feature::kDraftNorm, kDraft},
    {"blk.{L}.nextn.embed_tokens.weight", Role::kDraftEmbedding, kVocab, kHidden, kRows,
     Feature::kDraftEmbedding, kDraft},
    {"blk.{L}.nextn.shared_head_head.weight", Role::kDraftOutput, kVocab, kHidden, kRows,
     Feature::kDraftOutput, kDraft},
};

template <size_t... Sizes>
constexpr auto Join(const TensorRow (&... parts)[Sizes]) {
  std::array<TensorRow, (Sizes + ...)> all{};
  size_t at = 0;
  const auto append = [&](const auto& part) {
    for (const TensorRow& row : part) all[at++] = row;
  };
  (append(parts), ...);
  return all;
}

}  // namespace tables

// A decoder with pre-norms, grouped-query attention, and a gated FFN or a mixture of experts: llama
// and its relatives. Optional tensors (biases, head norms, an untied output matrix, rope factors)
// may be missing from the file.
inline constexpr auto kLlamaTensors = tables::Join(
    tables::kEnds, tables::kRopeFactors, tables::kAttnNorm, tables::kAttention3, tables::kHeadNorms,
    tables::kAttentionOut, tables::kFfnNorm, tables::kGatedFfn, tables::kMixtureOfExperts);

inline constexpr auto kQwen2MoeTensors =
    tables::Join(tables::kEnds, tables::kAttnNorm, tables::kAttention3, tables::kAttentionOut,
                 tables::kFfnNorm, tables::kMixtureOfExperts, tables::kSharedExperts);

inline constexpr auto kGpt2Tensors =
    tables::Join(tables::kEnds, tables::kAttnNorm, tables::kAttentionFused, tables::kAttentionOut,
                 tables::kFfnNorm, tables::kGpt2Own);

inline constexpr auto kPhi3Tensors = tables::Join(
    tables::kEnds, tables::kLongRopeFactors, tables::kAttnNorm, tables::kAttentionFused,
    tables::kAttentionOut, tables::kFfnNorm, tables::kPhi3Ffn);

inline constexpr auto kDeepseek2Tensors = tables::Join(
    tables::kEnds, tables::kAttnNorm, tables::kLatentAttention, tables::kFfnNorm, tables::kGatedFfn,
    tables::kMixtureOfExperts, tables::kSharedExperts, tables::kSelectionBias);

inline constexpr auto kGptOssTensors =
    tables::Join(tables::kEnds, tables::kAttnNorm, tables::kAttention3, tables::kAttentionOut,
                 tables::kFfnNormAfterAttention, tables::kMixtureOfExperts, tables::kGptOssOwn);

inline constexpr auto kGlm4MoeTensors = tables::Join(
    tables::kEnds, tables::kAttnNorm, tables::kAttention3, tables::kHeadNorms,
    tables::kAttentionOut, tables::kFfnNormAfterAttention, tables::kGatedFfn,
    tables::kMixtureOfExperts, tables::kSharedExperts, tables::kSelectionBias, tables::kDraftHead);

inline constexpr auto kLlama4Tensors =
    tables::Join(tables::kEnds, tables::kRopeFactors, tables::kAttnNorm, tables::kAttention3,
                 tables::kAttentionOut, tables::kFfnNorm, tables::kGatedFfn,
                 tables::kMixtureOfExperts, tables::kSharedExperts);

inline constexpr auto kMinimaxM2Tensors = tables::Join(
    tables::kEnds, tables::kAttnNorm, tables::kAttention3, tables::kJointHeadNorms,
    tables::kAttentionOut, tables::kFfnNorm, tables::kMixtureOfExperts, tables::kSelectionBias);

inline constexpr auto kGemmaTensors =
    tables::Join(tables::kEnds, tables::kAttnNorm, tables::kAttention3, tables::kHeadNorms,
                 tables::kAttentionOut, tables::kFfnNorm, tables::kGatedFfn, tables::kPostNorms);

inline constexpr auto kGemma4Tensors =
    tables::Join(tables::kEnds, tables::kLayerInputs, tables::kAttnNorm, tables::kGemma4Own,
                 tables::kAttentionOut, tables::kFfnNorm, tables::kMixtureOfExperts,
                 tables::kFusedExperts, tables::kGemma4Mixture, tables::kPostNorms);

inline constexpr auto kQwen3NextTensors =
    tables::Join(tables::kEnds, tables::kAttnNorm, tables::kGatedAttention, tables::kDeltaNet,
                 tables::kDeltaGates, tables::kDeltaByKeyHead, tables::kGatedFfn,
                 tables::kMixtureOfExperts, tables::kFusedExperts, tables::kSharedExperts);

inline constexpr auto kQwen35Tensors =
    tables::Join(tables::kEnds, tables::kAttnNorm, tables::kGatedAttention, tables::kDeltaNet,
                 tables::kDeltaGates, tables::kGatedFfn, tables::kMixtureOfExperts,
                 tables::kFusedExperts, tables::kSharedExperts, tables::kDraftHead);

}  // namespace tandem::model

#endif  // TANDEM_COMMON_MODEL_TENSOR_TABLES_H_
