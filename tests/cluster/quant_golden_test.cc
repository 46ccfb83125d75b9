// Quantised models against the logits of their dequantised weights: within 1e-3 where activations
// stay F32, and no worse than the reference engine, which rounds activations to 8 bits as our SIMD
// kernels do, elsewhere.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <string>
#include <tuple>

#include "kernels/factory.h"
#include "tests/cluster/golden_cases.h"
#include "tests/cluster/worker_driver.h"

namespace tandem::testing {
namespace {

constexpr double kMaxAbsDiffF32 = 1e-3;
constexpr double kRmsRatio = 1.1;
constexpr double kMaxMeanKl = 3e-3;

// Sums over rows of logits.
struct Divergence {
  double max_abs = 0;
  double sum_squares = 0;
  double sum_kl = 0;  // KL(reference || found), nats
  size_t values = 0;
  size_t rows = 0;
  size_t same_top = 0;

  double rms() const { return std::sqrt(sum_squares / static_cast<double>(values)); }
  double mean_kl() const { return sum_kl / static_cast<double>(rows); }

  void Add(const std::vector<float>& found, const std::vector<float>& wanted) {
    for (size_t i = 0; i < wanted.size(); ++i) {
      const double diff = std::fabs(double{found[i]} - double{wanted[i]});
      if (!(diff <= max_abs)) max_abs = diff;  // a NaN counts
      sum_squares += diff * diff;
    }
    const double found_norm = LogSumExp(found);
    const double wanted_norm = LogSumExp(wanted);
    for (size_t i = 0; i < wanted.size(); ++i) {
      const double log_p = wanted[i] - wanted_norm;
      sum_kl += std::exp(log_p) * (log_p - (found[i] - found_norm));
    }
    values += wanted.size();
    ++rows;
    same_top += std::max_element(found.begin(), found.end()) - found.begin() ==
                std::max_element(wanted.begin(), wanted.end()) - wanted.begin();
  }

  static double LogSumExp(const std::vector<float>& row) {
    const double top = *std::max_element(row.begin(), row.end());
    double sum = 0;
    for (float value : row) sum += std::exp(value - top);
    return top + std::log(sum);
  }
};

// File, kernels, ranks.
using Parameters = std::tuple<std::string, std::string, int>;

class QuantGoldenTest : public ::testing::TestWithParam<Parameters> {};

TEST_P(QuantGoldenTest, LogitsOfAllStoredPositions) {
  const auto& [file, kernels, ranks] = GetParam();
  if (!kernels::MakeBackend({.device = "cpu", .cpu_kernels = kernels, .threads = 1}).ok()) {
    GTEST_SKIP() << "this machine has no " << kernels;
  }
  const GoldenModel golden = ReadQuantGolden(file);
  coordinator::WorkerOptions options = TestWorkerOptions(golden.path);
  options.cpu_kernels = kernels;
  options.tensor_parallel_size = ranks;
  auto driver = WorkerDriver::Start(options);
  ASSERT_TRUE(driver.ok()) << driver.status();
  Divergence divergence;
  for (const GoldenCase& one : golden.cases) {
    (*driver)->Reset();
    auto logits = (*driver)->Prefill(one.tokens, one.positions, 256);
    ASSERT_TRUE(logits.ok()) << logits.status();
    ASSERT_EQ(logits->size(), one.logits.size());
    for (size_t row = 0; row < logits->size(); ++row) {
      ASSERT_EQ((*logits)[row].size(), one.logits[row].size());
      divergence.Add((*logits)[row], one.logits[row]);
    }
  }
  std::printf("%s %s tp%d: max %.4f rms %.5f (reference engine %.5f) mean KL %.2e top-1 %zu/%zu\n",
              file.c_str(), kernels.c_str(), ranks, divergence.max_abs, divergence.rms(),
              golden.reference_rms, divergence.mean_kl(), divergence.same_top, divergence.rows);
  if (kernels == "reference") {
    EXPECT_LE(divergence.max_abs, kMaxAbsDiffF32);
  } else {
    EXPECT_LE(divergence.rms(), kRmsRatio * golden.reference_rms);
    EXPECT_LE(divergence.mean_kl(), kMaxMeanKl);
  }
}

INSTANTIATE_TEST_SUITE_P(Models, QuantGoldenTest,
                         ::testing::Combine(::testing::Values("Q8_0.gguf", "Q4_0.gguf",
                                                              "Q4_K_M.gguf", "Q5_K_M.gguf",
                                                              "Q6_K.gguf"),
                                            ::testing::Values("reference", "avx2", "avx512"),
                                            ::testing::Values(1, 2)),
                         [](const ::testing::TestParamInfo<Parameters>& param) {
                           std::string file = std::get<0>(param.param);
                           file.resize(file.find('.'));
                           return file + "_" + std::get<1>(param.param) + "_tp" +
                                  std::to_string(std::get<2>(param.param));
                         });

}  // namespace
}  // namespace tandem::testing
