// DraftScript: the tokens of a request that are known before it is run, for measurements.
#ifndef TANDEM_COORDINATOR_SPECULATION_DRAFT_SCRIPT_H_
#define TANDEM_COORDINATOR_SPECULATION_DRAFT_SCRIPT_H_

#include <cstdint>
#include <vector>

#include "common/base/ids.h"

namespace tandem::coordinator {

struct DraftScript {
  std::vector<TokenId> tokens;  // prompt and answer, as they were without speculation
  double acceptance = 1;        // the probability that a guess is right, of each alone
  uint64_t seed = 0;            // of the draw of the guesses that are right
};

}  // namespace tandem::coordinator

#endif  // TANDEM_COORDINATOR_SPECULATION_DRAFT_SCRIPT_H_
