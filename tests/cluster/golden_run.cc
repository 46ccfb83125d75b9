#include "tests/cluster/golden_run.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "common/base/status.h"

namespace tandem::testing {
namespace {

double MaxAbsDiff(const std::vector<float>& a, const std::vector<float>& b) {
  double most = a.size() == b.size() ? 0 : INFINITY;
  for (size_t i = 0; i < std::min(a.size(), b.size()); ++i) {
    const double diff = std::fabs(double{a[i]} - double{b[i]});
    if (!(diff <= most)) most = diff;  // a NaN counts
  }
  return most;
}

}  // namespace

GoldenRun::GoldenRun(GoldenModel golden)
    : options(TestServerConfig(golden.path)), golden_(std::move(golden)) {
  if (golden_.adapter.empty()) return;
  options.worker.model.lora_modules = {{.name = "golden", .path = golden_.adapter}};
}

absl::StatusOr<std::unique_ptr<WorkerDriver>> GoldenRun::Start() const {
  TANDEM_ASSIGN_OR_RETURN(auto driver, WorkerDriver::Start(options));
  driver->adapter = golden_.adapter.empty() ? 0 : 1;
  return driver;
}

void GoldenRun::CheckLogits() {
  auto driver = Start();
  ASSERT_TRUE(driver.ok()) << driver.status();
  for (const GoldenCase& one : golden_.cases) {
    for (uint32_t chunk : {256u, 5u}) CheckPrefill(**driver, one, chunk);
    CheckTokens(**driver, one);
  }
}

void GoldenRun::CheckGreedy() {
  auto driver = Start();
  ASSERT_TRUE(driver.ok()) << driver.status();
  for (const GoldenCase& one : golden_.cases) CheckTokens(**driver, one);
}

void GoldenRun::CheckPrefill(WorkerDriver& driver, const GoldenCase& one, uint32_t chunk) {
  driver.Reset();
  auto logits = driver.Prefill(one.tokens, one.positions, chunk);
  ASSERT_TRUE(logits.ok()) << logits.status();
  ASSERT_EQ(logits->size(), one.logits.size());
  for (size_t row = 0; row < logits->size(); ++row) {
    const double diff = MaxAbsDiff((*logits)[row], one.logits[row]);
    largest_diff_ = std::max(largest_diff_, diff);
    EXPECT_LE(diff, max_abs_diff) << "position " << one.positions[row] << " of "
                                  << one.tokens.size() << " tokens, chunks of " << chunk;
  }
}

void GoldenRun::CheckTokens(WorkerDriver& driver, const GoldenCase& one) {
  auto tokens = GreedyTokens(driver, one.tokens, one.greedy.size());
  ASSERT_TRUE(tokens.ok()) << tokens.status();
  EXPECT_EQ(*tokens, one.greedy) << "prompt of " << one.tokens.size() << " tokens";
}

}  // namespace tandem::testing
