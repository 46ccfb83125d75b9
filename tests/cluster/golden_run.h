// GoldenRun: a reference model through real worker processes: stored logits, prefilled at once and
// in chunks, and the greedy continuation.
#ifndef TANDEM_TESTS_CLUSTER_GOLDEN_RUN_H_
#define TANDEM_TESTS_CLUSTER_GOLDEN_RUN_H_

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "tests/cluster/golden_cases.h"
#include "tests/cluster/worker_driver.h"

namespace tandem::testing {

// Failures are GoogleTest's.
class GoldenRun {
 public:
  // `options` as TestServerConfig(model.path) gives them, changed at will.
  explicit GoldenRun(GoldenModel golden);

  config::ServerConfig options;
  // Allowed between any logit and the stored one.
  double max_abs_diff = 1e-3;

  // Every stored logit, and the greedy tokens.
  void CheckLogits();
  // Tokens only.
  void CheckGreedy();
  // Over all that CheckLogits compared; negative before.
  double largest_diff() const { return largest_diff_; }

 private:
  absl::StatusOr<std::unique_ptr<WorkerDriver>> Start() const;
  void CheckPrefill(WorkerDriver& driver, const GoldenCase& one, uint32_t chunk);
  void CheckTokens(WorkerDriver& driver, const GoldenCase& one);

  const GoldenModel golden_;
  double largest_diff_ = -1;
};

}  // namespace tandem::testing

#endif  // TANDEM_TESTS_CLUSTER_GOLDEN_RUN_H_
