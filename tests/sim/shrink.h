// Shrink: of a run with a violation, a smaller one that has one, too.
#ifndef TANDEM_TESTS_SIM_SHRINK_H_
#define TANDEM_TESTS_SIM_SHRINK_H_

#include <functional>

#include "tests/sim/run_id.h"

namespace tandem::sim {

// Leaves out each part without which `fails` still holds, and as many steps. Every run is another
// one, so the violation may be another one.
RunId Shrink(RunId run, const std::function<bool(const RunId&)>& fails);

// Whether the run has a violation. It is made by another process, since a violation ends that.
bool FailsInAnotherProcess(const RunId& run);

}  // namespace tandem::sim

#endif  // TANDEM_TESTS_SIM_SHRINK_H_
