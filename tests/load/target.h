// Target: what a load is sent to: a server, or the simulation of one.
#ifndef TANDEM_TESTS_LOAD_TARGET_H_
#define TANDEM_TESTS_LOAD_TARGET_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "tests/load/dataset.h"
#include "tests/load/options.h"
#include "tests/load/request.h"
#include "tests/load/run_record.h"
#include "tests/load/run_settings.h"

namespace tandem::load {

// Its calls are one thread's, but for Stop.
class Target {
 public:
  virtual ~Target() = default;

  // Also shows that it can be used.
  virtual absl::StatusOr<ModelFacts> Model() = 0;
  virtual absl::StatusOr<uint32_t> CountTokens(const std::string& text) = 0;
  // Sends the requests at their times, and waits for the last one's end. CANCELLED after Stop.
  virtual absl::StatusOr<RunRecord> Run(const std::vector<LoadRequest>& requests,
                                        const RunSettings& settings) = 0;
  // Thread-safe: the run under way ends early and no other begins.
  virtual void Stop() = 0;
};

// `options` have been checked and are borrowed.
absl::StatusOr<std::unique_ptr<Target>> ConnectServer(const LoadOptions& options);
absl::StatusOr<std::unique_ptr<Target>> SimulateServer(const LoadOptions& options);

}  // namespace tandem::load

#endif  // TANDEM_TESTS_LOAD_TARGET_H_
