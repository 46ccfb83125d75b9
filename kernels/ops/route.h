// Route: which experts a token goes to.
#ifndef TANDEM_KERNELS_OPS_ROUTE_H_
#define TANDEM_KERNELS_OPS_ROUTE_H_

#include <cstdint>
#include <string_view>

#include "kernels/ops/array.h"

namespace tandem::kernels {

inline constexpr uint32_t kMaxExpertGroups = 64;
// No rank has this expert: its choices are skipped by the grouped products.
inline constexpr int32_t kNoExpert = -1;

// The experts that a token is routed to, and their weights: scores are the softmax or the sigmoid
// of the logits; the top_k experts with the largest score + selection_bias are taken (with sigmoids
// and neither bias nor groups those with the largest logits: large ones have equal scores), one
// argmax after the other, the lowest id on a tie; weights are their scores (without the bias),
// divided by their sum if `normalize` (0 where that is 0), times `scale`, times the expert's own
// expert_scale. With groups (DeepSeek-V3, arXiv:2412.19437, section 2.1.2) only experts of the
// groups_kept groups whose group_top best biased scores have the largest sums can be taken.
struct RouteParams {
  static constexpr std::string_view kName = "Route";

  const float* logits;     // (T, experts)
  const int32_t* lengths;  // (T) or null; 0: the row is padding and gets no expert
  uint32_t tokens;
  uint32_t experts;
  uint32_t top_k;
  bool sigmoid;
  bool normalize;
  float scale;
  const float* selection_bias;  // (experts) or null
  uint32_t groups;              // divides experts; 1: no groups
  uint32_t groups_kept;
  uint32_t group_top;
  int32_t* ids;                         // (T, top_k), in the order of choice; of padding kNoExpert
  float* weights;                       // (T, top_k); of padding 0
  const float* expert_scale = nullptr;  // (experts) or null

  template <class Params, class Visit>
  static void ForEachPointer(Params& p, Visit&& visit) {
    visit("logits", p.logits, In(p.tokens, p.experts));
    visit("lengths", p.lengths, In(p.tokens).Optional());
    visit("selection_bias", p.selection_bias, In(p.experts).Optional());
    visit("expert_scale", p.expert_scale, In(p.experts).Optional());
    visit("ids", p.ids, Out(p.tokens, p.top_k));
    visit("weights", p.weights, Out(p.tokens, p.top_k));
  }
};

}  // namespace tandem::kernels

#endif  // TANDEM_KERNELS_OPS_ROUTE_H_
