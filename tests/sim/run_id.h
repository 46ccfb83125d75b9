// RunId: names one run of the simulation. Runs of the same id are the same, event by event.
#ifndef TANDEM_TESTS_SIM_RUN_ID_H_
#define TANDEM_TESTS_SIM_RUN_ID_H_

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "tests/sim/scenario.h"

namespace tandem::sim {

// What a scenario can do without, for a violation that is easier to understand.
struct Part {
  const char* name;
  void (*leave_out)(Scenario&);
};
std::span<const Part> Parts();
bool IsPart(const std::string& name);

struct RunId {
  uint64_t seed = 1;
  uint64_t num_steps = 0;              // of the engine
  std::vector<std::string> without{};  // names of parts

  Scenario Draw(Random& random) const;
  // The command that runs it.
  std::string Command() const;
};

}  // namespace tandem::sim

#endif  // TANDEM_TESTS_SIM_RUN_ID_H_
