// What would continue a repetition: the ids that followed where the sequence's last tokens occurred
// before, for the DRY sampler. Source: https://github.com/oobabooga/text-generation-webui/pull/5677
// (p-e-w), and llama.cpp's dry sampler.
#ifndef TANDEM_COORDINATOR_ENGINE_REPEATED_ENDINGS_H_
#define TANDEM_COORDINATOR_ENGINE_REPEATED_ENDINGS_H_

#include <cstdint>
#include <span>
#include <vector>

#include "common/base/ids.h"

namespace tandem::coordinator {

struct RepeatedEnding {
  TokenId next = 0;
  uint32_t length = 0;  // of the longest ending of the tokens that came before `next` already
  bool operator==(const RepeatedEnding&) const = default;
};

// Ids after earlier occurrences of endings of at least `least_length` tokens (> 0), ascending. No
// ending holds an id of `breakers`, which are sorted, and none of them is found: they may always
// come again. Takes time linear in the tokens, and sorts what it finds.
std::vector<RepeatedEnding> RepeatedEndings(std::span<const TokenId> tokens, uint32_t least_length,
                                            std::span<const TokenId> breakers);

}  // namespace tandem::coordinator

#endif  // TANDEM_COORDINATOR_ENGINE_REPEATED_ENDINGS_H_
