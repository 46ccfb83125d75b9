// Quantised models against the logits of their dequantised weights: within 1e-3 where activations
// stay F32, and no worse than the reference engine, which rounds activations to 8 bits as our SIMD
// kernels do, elsewhere.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <string>
#include <tuple>

#include "kernels/factory.h"
#include "tests/cluster/divergence.h"
#include "tests/cluster/golden_cases.h"
#include "tests/cluster/worker_driver.h"
#include "tests/common/config/named.h"

namespace tandem::testing {
namespace {

constexpr double kMaxAbsDiffF32 = 1e-3;
constexpr double kRmsRatio = 1.1;
constexpr double kMaxMeanKl = 3e-3;

// File, kernels, ranks.
using Parameters = std::tuple<std::string, std::string, int>;

class QuantGoldenTest : public ::testing::TestWithParam<Parameters> {};

TEST_P(QuantGoldenTest, LogitsOfAllStoredPositions) {
  const auto& [file, kernels, ranks] = GetParam();
  if (!kernels::MakeBackend({.cpu_kernels = Named<config::CpuKernels>(kernels), .threads = 1})
           .ok()) {
    GTEST_SKIP() << "this machine has no " << kernels;
  }
  const GoldenModel golden = ReadQuantGolden(file);
  config::ServerConfig options = TestServerConfig(golden.path);
  options.worker.device.cpu_kernels = Named<config::CpuKernels>(kernels);
  options.cluster.tensor_parallel_size = ranks;
  auto driver = WorkerDriver::Start(options);
  ASSERT_TRUE(driver.ok()) << driver.status();
  Divergence divergence;
  ASSERT_NO_FATAL_FAILURE(AddGolden(**driver, golden, /*chunk=*/256, divergence));
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

INSTANTIATE_TEST_SUITE_P(
    Models, QuantGoldenTest,
    ::testing::Combine(::testing::Values("Q8_0.gguf", "Q4_0.gguf", "Q4_K_M.gguf", "Q5_K_M.gguf",
                                         "Q6_K.gguf"),
                       ::testing::Values("reference", "avx2", "avx2-vnni", "avx512"),
                       ::testing::Values(1, 2)),
    [](const ::testing::TestParamInfo<Parameters>& param) {
      std::string file = std::get<0>(param.param);
      file.resize(file.find('.'));
      std::string name =
          file + "_" + std::get<1>(param.param) + "_tp" + std::to_string(std::get<2>(param.param));
      std::replace(name.begin(), name.end(), '-', '_');
      return name;
    });

}  // namespace
}  // namespace tandem::testing
