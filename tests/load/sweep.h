// Sweep: searches for the highest rate with which a server keeps up, by runs at one rate each.
#ifndef TANDEM_TESTS_LOAD_SWEEP_H_
#define TANDEM_TESTS_LOAD_SWEEP_H_

#include <cstdint>
#include <functional>
#include <optional>
#include <ostream>

#include "absl/status/statusor.h"
#include "common/base/clock.h"
#include "tests/load/options.h"
#include "tests/load/rate_search.h"
#include "tests/load/run_result.h"

namespace tandem::load {

class Sweep {
 public:
  // Makes a run of so many requests at a rate, and prints it. The result is valid until the next.
  using Run = std::function<absl::StatusOr<const RunResult*>(double rate, uint32_t num_prompts)>;

  // `options` have been checked. What is found is printed to `out`. All are borrowed.
  Sweep(const LoadOptions& options, Run run, std::ostream& out);

  // Errors of a run, and INTERNAL if no request of one has a latency.
  absl::Status Search();

  std::optional<double> kept_up() const { return search_.kept_up(); }
  std::optional<double> saturated() const { return search_.saturated(); }

 private:
  struct Verdict {
    bool waits;        // for the server: it does not keep up
    double good;       // the part within --goodput
    double latency_s;  // of the run's first requests
  };

  // Runs at the rate, longer ones until the last is clear.
  absl::StatusOr<Verdict> Judge(double rate, double seconds);
  uint32_t NumPrompts(double rate, double seconds) const;
  void PrintFound();

  const LoadOptions& options_;
  const Run run_;
  std::ostream& out_;
  const double longest_s_;
  const uint32_t most_prompts_;
  RateSearch search_;
};

}  // namespace tandem::load

#endif  // TANDEM_TESTS_LOAD_SWEEP_H_
