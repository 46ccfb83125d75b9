// NgramDrafter: prompt lookup. A sequence's next tokens are guessed to be those that followed the
// last time that its latest tokens occurred, in its prompt or in what was generated.
//
// Source: A. Saxena, "Prompt Lookup Decoding", 2023. The index is bounded: a table of positions by
// hash, in which newer n-grams take the place of older ones.
#ifndef TANDEM_COORDINATOR_SPECULATION_NGRAM_DRAFTER_H_
#define TANDEM_COORDINATOR_SPECULATION_NGRAM_DRAFTER_H_

#include <cstdint>
#include <span>
#include <vector>

#include "common/base/ids.h"
#include "coordinator/speculation/drafter.h"

namespace tandem::coordinator {

// One thread.
class NgramDrafter : public Drafter {
 public:
  // None if the last kMatch tokens did not occur before. A long prompt is read over several calls,
  // and until then there are none.
  std::vector<TokenId> Draft(std::span<const TokenId> tokens, uint32_t most) override;
  bool on_workers() const override { return false; }

  static constexpr uint32_t kMatch = 3;

 private:
  // Enters the n-grams of new tokens, and finds the last one.
  void Index(std::span<const TokenId> tokens);
  void Grow(std::span<const TokenId> tokens);

  uint32_t found_ = 0;          // the position after the last n-gram's earlier time; 0: none
  uint32_t num_indexed_ = 0;    // n-grams that end before this position are entered
  std::vector<uint32_t> ends_;  // by hash: the position after an n-gram; 0: none
};

}  // namespace tandem::coordinator

#endif  // TANDEM_COORDINATOR_SPECULATION_NGRAM_DRAFTER_H_
