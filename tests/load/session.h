// Session: all runs of one command line, from connecting to the written results.
#ifndef TANDEM_TESTS_LOAD_SESSION_H_
#define TANDEM_TESTS_LOAD_SESSION_H_

#include <optional>
#include <ostream>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "tests/load/options.h"
#include "tests/load/run_result.h"
#include "tests/load/target.h"

namespace tandem::load {

class Session {
 public:
  // `options` have been checked. Results are printed to `out`. All are borrowed.
  Session(const LoadOptions& options, Target& target, std::string command_line, std::ostream& out)
      : options_(options), target_(target), command_line_(std::move(command_line)), out_(out) {}

  // Connects and makes all runs, then writes the files, also after an early end. OK only if every
  // request was completed or cancelled on purpose; CANCELLED after Target::Stop.
  absl::Status Run();

 private:
  struct Point {
    double rate;
    std::optional<uint32_t> max_concurrency;
  };

  absl::Status Connect();
  absl::Status WarmUp();
  absl::Status RunPoints();
  absl::Status RunSweep();
  // Makes and prints one run of at most `num_prompts`; the result joins results_.
  absl::Status RunPoint(const Point& point, uint32_t num_prompts, Duration max_duration);
  absl::Status WriteFiles() const;
  // Of the results, if nothing else failed.
  absl::Status Judge() const;

  const LoadOptions& options_;
  Target& target_;
  const std::string command_line_;
  std::ostream& out_;
  ModelFacts model_;
  std::vector<RunResult> results_;
};

}  // namespace tandem::load

#endif  // TANDEM_TESTS_LOAD_SESSION_H_
