// Route: top-k routing of a mixture of experts, in one pass over a token's logits. Shared by all
// backends on the host.
#include <algorithm>
#include <cmath>
#include <limits>

#include "common/base/check.h"
#include "kernels/host/ops.h"

namespace tandem::kernels::host {
namespace {

constexpr float kNever = -std::numeric_limits<float>::infinity();

void Softmax(const float* logits, uint32_t count, float* scores) {
  const float largest = *std::max_element(logits, logits + count);
  double sum = 0;
  for (uint32_t i = 0; i < count; ++i) sum += std::exp(double{logits[i]} - largest);
  for (uint32_t i = 0; i < count; ++i) {
    scores[i] = static_cast<float>(std::exp(double{logits[i]} - largest) / sum);
  }
}

void Sigmoid(const float* logits, uint32_t count, float* scores) {
  for (uint32_t i = 0; i < count; ++i) {
    scores[i] = static_cast<float>(1.0 / (1.0 + std::exp(-double{logits[i]})));
  }
}

// Whether `a` is taken before `b`: numbers in descending order, then NaN, then kNever, so that no
// expert is taken twice.
bool Before(float a, float b) {
  if (std::isnan(a)) return b == kNever;
  if (std::isnan(b)) return a != kNever;
  return a > b;
}

// The lowest index of the first value in that order; taken values are kNever.
uint32_t ArgMax(const float* values, uint32_t count) {
  uint32_t best = 0;
  for (uint32_t i = 1; i < count; ++i) {
    if (Before(values[i], values[best])) best = i;
  }
  return best;
}

// Sum of the `count` largest of `values`, which it destroys.
float SumOfLargest(float* values, uint32_t size, uint32_t count) {
  float sum = 0;
  for (uint32_t i = 0; i < count; ++i) {
    const uint32_t best = ArgMax(values, size);
    sum += values[best];
    values[best] = kNever;
  }
  return sum;
}

// Scratch: scores (experts), choice (experts), groups (groups), one group's values (experts).
class TokenRouter {
 public:
  TokenRouter(const RouteParams& p, uint32_t token, std::byte* scratch)
      : p_(p),
        padding_(p.lengths != nullptr && p.lengths[token] == 0),
        logits_(p.logits + size_t{token} * p.experts),
        ids_(p.ids + size_t{token} * p.top_k),
        weights_(p.weights + size_t{token} * p.top_k),
        scores_(reinterpret_cast<float*>(scratch)),
        choice_(scores_ + p.experts),
        groups_(choice_ + p.experts),
        values_(groups_ + p.groups) {}

  void Run() {
    if (padding_) {
      std::fill_n(ids_, p_.top_k, kNoExpert);
      std::fill_n(weights_, p_.top_k, 0.0f);
      return;
    }
    (p_.sigmoid ? Sigmoid : Softmax)(logits_, p_.experts, scores_);
    const bool by_logit = p_.sigmoid && p_.selection_bias == nullptr && p_.groups == 1;
    for (uint32_t e = 0; e < p_.experts; ++e) {
      // An expert with a logit of -inf can be taken.
      const float logit = std::max(logits_[e], std::numeric_limits<float>::lowest());
      choice_[e] = (by_logit ? logit : scores_[e]) +
                   (p_.selection_bias != nullptr ? p_.selection_bias[e] : 0.0f);
    }
    if (p_.groups > 1) DropGroups();
    float sum = 0;
    for (uint32_t k = 0; k < p_.top_k; ++k) {
      const uint32_t best = ArgMax(choice_, p_.experts);
      choice_[best] = kNever;
      ids_[k] = static_cast<int32_t>(best);
      weights_[k] = scores_[best];
      sum += scores_[best];
    }
    // Sigmoids of very small logits are all 0: such a token's expert weights are 0.
    const float divisor = p_.normalize ? sum : 1.0f;
    const float factor = divisor == 0 ? 0.0f : p_.scale / divisor;
    for (uint32_t k = 0; k < p_.top_k; ++k) {
      weights_[k] *= factor;
      if (p_.expert_scale != nullptr) weights_[k] *= p_.expert_scale[ids_[k]];
    }
  }

 private:
  void DropGroups() {
    const uint32_t size = p_.experts / p_.groups;
    for (uint32_t g = 0; g < p_.groups; ++g) {
      std::copy_n(choice_ + g * size, size, values_);
      groups_[g] = SumOfLargest(values_, size, p_.group_top);
    }
    for (uint32_t kept = 0; kept < p_.groups_kept; ++kept) {
      const uint32_t best = ArgMax(groups_, p_.groups);
      groups_[best] = kNever;
      kept_[best] = true;
    }
    for (uint32_t g = 0; g < p_.groups; ++g) {
      if (!kept_[g]) std::fill_n(choice_ + g * size, size, kNever);
    }
  }

  const RouteParams& p_;
  const bool padding_;
  const float* const logits_;
  int32_t* const ids_;
  float* const weights_;
  float* const scores_;
  float* const choice_;
  float* const groups_;
  float* const values_;
  bool kept_[kMaxExpertGroups] = {};
};

void RouteToken(const RouteParams& p, const TaskContext& context) {
  TokenRouter(p, context.task, context.thread_scratch).Run();
}

}  // namespace

void EncodeOp(OpList& list, const RouteParams& params) {
  TANDEM_CHECK(params.top_k <= params.experts && params.groups <= kMaxExpertGroups);
  list.ReserveScratch(0, (size_t{3} * params.experts + params.groups) * sizeof(float));
  list.Add("route", params.tokens, &RouteToken, params);
}

}  // namespace tandem::kernels::host
