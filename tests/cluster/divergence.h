// Divergence: distance of found logits from expected ones, over many rows.
#ifndef TANDEM_TESTS_CLUSTER_DIVERGENCE_H_
#define TANDEM_TESTS_CLUSTER_DIVERGENCE_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "tests/cluster/golden_cases.h"
#include "tests/cluster/worker_driver.h"

namespace tandem::testing {

struct Divergence {
  double max_abs = 0;
  double sum_squares = 0;
  double sum_kl = 0;  // KL(expected || found), nats
  size_t values = 0;
  size_t rows = 0;
  size_t same_top = 0;

  double rms() const;
  double mean_kl() const;
  void Add(const std::vector<float>& found, const std::vector<float>& wanted);
};

// Adds all stored logits of `golden`, prefilled in chunks. Failures are GoogleTest's.
void AddGolden(WorkerDriver& driver, const GoldenModel& golden, uint32_t chunk,
               Divergence& divergence);

}  // namespace tandem::testing

#endif  // TANDEM_TESTS_CLUSTER_DIVERGENCE_H_
