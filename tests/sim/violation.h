// What the simulation does when something is wrong: one line that says what, one with the command
// that replays the run, and the end of the process.
#ifndef TANDEM_TESTS_SIM_VIOLATION_H_
#define TANDEM_TESTS_SIM_VIOLATION_H_

#include <cstdint>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "tests/sim/run_id.h"

namespace tandem::sim {

// The run that is going on. From the first call on, a failed TANDEM_CHECK, a crash and a run that
// takes a minute are reported like a violation.
void BeginRun(const RunId& run);
// Where the run is, for the report: the number of the current event.
void NoteEvent(uint64_t event);

[[noreturn]] void Violation(std::string_view what);

inline void Require(bool holds, std::string_view what) {
  if (!holds) Violation(what);
}

inline void RequireOk(const absl::Status& status) {
  if (!status.ok()) Violation(std::string(status.message()));
}

}  // namespace tandem::sim

#endif  // TANDEM_TESTS_SIM_VIOLATION_H_
