// LogitAdjuster: how the tokens of a request change the logits of its next one: biases, bans and
// penalties, as the sparse list that a step carries. Workers know nothing of it, so nothing is lost
// with them (docs/decisions/0022-logit-adjustments.md).
//
// A pure function of the sampling parameters and the tokens; it only keeps counts, to be quick. One
// thread.
#ifndef TANDEM_COORDINATOR_ENGINE_LOGIT_ADJUSTER_H_
#define TANDEM_COORDINATOR_ENGINE_LOGIT_ADJUSTER_H_

#include <cstdint>
#include <span>
#include <vector>

#include "common/step/descriptor.h"
#include "coordinator/engine/request.h"
#include "coordinator/engine/token_counts.h"

namespace tandem::coordinator {

class LogitAdjuster {
 public:
  // `sampling` has passed RequestCheck and must outlive the adjuster.
  LogitAdjuster(const Sampling& sampling, uint32_t prompt_len);

  // Whether adjustments depend on which tokens there are, and not only on their number.
  bool needs_known_tokens() const;
  // For the row that draws the token after `tokens`, prompt and generated, and `num_pending` more
  // that are not known: ascending by id. Nothing is done for a request without such parameters.
  // REQUIRES: `tokens` begins with those of the last call; all are known if needs_known_tokens().
  std::vector<step::LogitAdjustment> Adjust(std::span<const TokenId> tokens,
                                            uint32_t num_pending = 0);

 private:
  using Adjustments = std::vector<step::LogitAdjustment>;

  Adjustments Penalties(std::span<const TokenId> tokens);
  Adjustments DryPenalties(std::span<const TokenId> tokens) const;
  Adjustments Bans(std::span<const TokenId> tokens, uint32_t num_pending) const;

  const Sampling& sampling_;
  const uint32_t prompt_len_;
  const bool counts_tokens_;
  Adjustments biases_;
  TokenCounts counts_;
};

}  // namespace tandem::coordinator

#endif  // TANDEM_COORDINATOR_ENGINE_LOGIT_ADJUSTER_H_
