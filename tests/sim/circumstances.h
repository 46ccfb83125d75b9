// Circumstances: what the run allows its requests at the moment, and what they have received.
#ifndef TANDEM_TESTS_SIM_CIRCUMSTANCES_H_
#define TANDEM_TESTS_SIM_CIRCUMSTANCES_H_

#include <cstdint>

namespace tandem::sim {

struct Circumstances {
  bool stopping = false;        // the server: kCancelled for all
  bool lost = false;            // the workers, for good: UNAVAILABLE for all
  uint64_t num_not_finite = 0;  // results without a finite logit: INTERNAL for one request each
  uint64_t num_losses = 0;      // of workers
  uint64_t num_tokens = 0;      // received, by all clients
  uint64_t trace = 0;           // a fold of them
};

}  // namespace tandem::sim

#endif  // TANDEM_TESTS_SIM_CIRCUMSTANCES_H_
