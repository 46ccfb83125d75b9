// Optional features of a model. Most are probed from the file's tensors, none is guessed from the
// architecture's name.
#ifndef TANDEM_COMMON_MODEL_FEATURE_H_
#define TANDEM_COMMON_MODEL_FEATURE_H_

#include <cstdint>

namespace tandem::model {

// Either all tensors of a feature exist, in every layer that they belong to, or none. Two features
// with one meaning exclude each other: the second of such a pair holds if the first does not.
enum class Feature : uint8_t {
  kAlways,  // the tensor must exist
  kQkvBias,
  kOutputBias,  // of the attention's output
  kFfnBias,
  kQkNorm,
  kUntiedHead,   // a separate output matrix; without it the head reads the embedding
  kRopeFactors,  // Llama 3's, folded into RopeSpec
  kLongRope,     // long and short factors, one of which is folded into RopeSpec
  kSinks,
  kRouterBias,
  kSelectionBias,
  kExpertBias,
  kSharedExperts,
  kSharedGate,
  kQueryRank,  // MLA: the query is computed from a compressed form
  kPlainQuery,
  kFusedExperts,  // gate and up of the experts in one tensor
  kSeparateExperts,
  kExpertScale,
  kLayerInputs,       // per-layer embeddings
  kLayerOutputScale,  // folded into ModelSpec
  kSplitKvB,          // MLA: K's and V's up-projections are separate tensors
  kJointKvB,
  kDeltaJointIn,  // delta net: one tensor of q, k, v and the gate, head by head
  kDeltaSplitIn,
  kDeltaJointGates,  // delta net: one tensor of the decays and the writes, head by head
  kDeltaSplitGates,
  // Draft head: its own, where the model's would do.
  kDraftNorm,
  kDraftEmbedding,
  kDraftOutput,
};

// A set of features.
class FeatureSet {
 public:
  void Add(Feature feature) { bits_ |= Bit(feature); }
  bool Has(Feature feature) const {
    switch (feature) {
      case Feature::kAlways:
        return true;
      case Feature::kPlainQuery:
        return !Has(Feature::kQueryRank);
      case Feature::kJointKvB:
        return !Has(Feature::kSplitKvB);
      case Feature::kSeparateExperts:
        return !Has(Feature::kFusedExperts);
      case Feature::kDeltaSplitIn:
        return !Has(Feature::kDeltaJointIn);
      case Feature::kDeltaSplitGates:
        return !Has(Feature::kDeltaJointGates);
      default:
        return (bits_ & Bit(feature)) != 0;
    }
  }
  bool operator==(const FeatureSet&) const = default;

 private:
  static uint32_t Bit(Feature feature) { return 1u << static_cast<uint32_t>(feature); }
  uint32_t bits_ = 0;
};

}  // namespace tandem::model

#endif  // TANDEM_COMMON_MODEL_FEATURE_H_
