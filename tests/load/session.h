// Session: all runs of one command line, from connecting to the written results.
#ifndef TANDEM_TESTS_LOAD_SESSION_H_
#define TANDEM_TESTS_LOAD_SESSION_H_

#include <memory>
#include <optional>
#include <ostream>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "common/base/mutex.h"
#include "tests/load/backend.h"
#include "tests/load/load_run.h"
#include "tests/load/options.h"
#include "tests/load/run_result.h"

namespace tandem::load {

class Session {
 public:
  // `options` have been checked. Results are printed to `out`. All are borrowed.
  Session(const LoadOptions& options, std::string command_line, std::ostream& out)
      : options_(options), command_line_(std::move(command_line)), out_(out) {}

  // Connects and makes all runs, then writes the files, also after an early end. OK only if every
  // request was completed or cancelled on purpose; CANCELLED after Stop.
  absl::Status Run();

  // Thread-safe: the run under way ends early and no other begins.
  void Stop();

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
  absl::StatusOr<RunRecord> MakeRun(const std::vector<LoadRequest>& requests,
                                    const RunSettings& settings);
  absl::Status WriteFiles() const;
  // Of the results, if nothing else failed.
  absl::Status Judge() const;

  const LoadOptions& options_;
  const std::string command_line_;
  std::ostream& out_;
  std::unique_ptr<Backend> backend_;
  ModelFacts model_;
  std::vector<RunResult> results_;
  Mutex mutex_;
  LoadRun* current_ TANDEM_GUARDED_BY(mutex_) = nullptr;
  bool stopped_ TANDEM_GUARDED_BY(mutex_) = false;
};

}  // namespace tandem::load

#endif  // TANDEM_TESTS_LOAD_SESSION_H_
