// Harm: when something last happened to the workers that the coordinator may call a loss. A loss
// without any, in the epoch that it ends, is an error of the coordinator's.
#ifndef TANDEM_TESTS_SIM_HARM_H_
#define TANDEM_TESTS_SIM_HARM_H_

#include <algorithm>

#include "common/base/clock.h"

namespace tandem::sim {

class Harm {
 public:
  void Note(TimePoint when) { last_ = std::max(last_, when); }
  TimePoint last() const { return last_; }

 private:
  TimePoint last_ = TimePoint::min();
};

}  // namespace tandem::sim

#endif  // TANDEM_TESTS_SIM_HARM_H_
