// Drafter: guesses one sequence's next tokens. NgramDrafter does in this process; for ModelDrafter
// the workers do, in the step that computes the guesses.
#ifndef TANDEM_COORDINATOR_SPECULATION_DRAFTER_H_
#define TANDEM_COORDINATOR_SPECULATION_DRAFTER_H_

#include <cstdint>
#include <span>
#include <vector>

#include "common/base/ids.h"

namespace tandem::coordinator {

// One thread.
class Drafter {
 public:
  virtual ~Drafter() = default;

  // Up to `most` tokens that may follow `tokens`. REQUIRES: `tokens` begins with those of the last
  // call.
  virtual std::vector<TokenId> Draft(std::span<const TokenId> tokens, uint32_t most) = 0;
  // Whether Draft says only how many may follow, as zeros: the workers guess them, and what they
  // have guessed comes with the step's result.
  virtual bool on_workers() const = 0;
};

// Guesses by a draft model or the draft head.
class ModelDrafter : public Drafter {
 public:
  std::vector<TokenId> Draft(std::span<const TokenId>, uint32_t most) override {
    return std::vector<TokenId>(most);
  }
  bool on_workers() const override { return true; }
};

}  // namespace tandem::coordinator

#endif  // TANDEM_COORDINATOR_SPECULATION_DRAFTER_H_
