// Every type of the KV cache through real worker processes: how far its logits lie from those of
// the F32 cache. The figures of docs/kv-cache.md are what this test prints.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <string>
#include <vector>

#include "tests/cluster/golden_cases.h"
#include "tests/cluster/worker_driver.h"
#include "tests/common/config/named.h"

namespace tandem::testing {
namespace {

using Rows = std::vector<std::vector<float>>;

struct Difference {
  double max = 0;
  double rms = 0;
  size_t other_tokens = 0;  // rows whose largest logit is another's
  size_t rows = 0;
};

Difference Compare(const Rows& rows, const Rows& exact) {
  Difference d;
  size_t values = 0;
  for (size_t r = 0; r < exact.size(); ++r) {
    for (size_t i = 0; i < exact[r].size(); ++i) {
      const double diff = std::fabs(double{rows[r][i]} - exact[r][i]);
      if (!(diff <= d.max)) d.max = diff;  // a NaN counts
      d.rms += diff * diff;
      ++values;
    }
    const auto argmax = [](const std::vector<float>& row) {
      return std::max_element(row.begin(), row.end()) - row.begin();
    };
    d.other_tokens += argmax(rows[r]) != argmax(exact[r]);
    ++d.rows;
  }
  d.rms = std::sqrt(d.rms / static_cast<double>(values));
  return d;
}

class KvCacheTypeTest : public ::testing::TestWithParam<int> {
 protected:
  // The stored positions of all cases, in chunks, so that most K and V are read back from pages.
  static Rows Logits(const GoldenModel& golden, const std::string& kernels, const std::string& type,
                     uint32_t chunk) {
    config::ServerConfig options = TestServerConfig(golden.path);
    options.worker.device.cpu_kernels = Named<config::CpuKernels>(kernels);
    options.cluster.tensor_parallel_size = GetParam();
    options.worker.cache.kv_cache_type = Named<tensor::Type>(type);
    Rows all;
    auto driver = WorkerDriver::Start(options);
    EXPECT_TRUE(driver.ok()) << driver.status();
    if (!driver.ok()) return all;
    for (const GoldenCase& one : golden.cases) {
      (*driver)->Reset();
      auto rows = (*driver)->Prefill(one.tokens, one.positions, chunk);
      EXPECT_TRUE(rows.ok()) << rows.status();
      if (rows.ok()) all.insert(all.end(), rows->begin(), rows->end());
    }
    return all;
  }

  // The bounds are a few times what 11, 8 and 7 significant bits of K and V lead to.
  static void ExpectCloseToF32(const GoldenModel& golden, const std::string& name,
                               const std::string& kernels) {
    const Rows exact = Logits(golden, kernels, "f32", 16);
    ASSERT_FALSE(exact.empty());
    const std::vector<std::pair<std::string, double>> bounds = {
        {"f16", 0.02}, {"bf16", 0.2}, {"q8_0", 0.5}};
    double f16 = 0;
    for (const auto& [type, bound] : bounds) {
      const Rows rows = Logits(golden, kernels, type, 16);
      ASSERT_EQ(rows.size(), exact.size()) << type;
      const Difference d = Compare(rows, exact);
      std::printf("%s, %s at TP %d: max %.2e, rms %.2e, another first token in %zu of %zu rows\n",
                  name.c_str(), type.c_str(), GetParam(), d.max, d.rms, d.other_tokens, d.rows);
      EXPECT_LE(d.max, bound) << type;
      EXPECT_GT(d.max, 0) << type << " is not in use";
      if (type == "f16") {
        f16 = d.max;
      } else {
        EXPECT_GT(d.max, f16) << type << " is coarser than f16";
      }
      // What a page holds does not depend on how it was filled.
      EXPECT_EQ(Logits(golden, kernels, type, 5), rows) << type;
    }
  }
};

TEST_P(KvCacheTypeTest, Qwen3) {
  ExpectCloseToF32(ReadArchGolden("qwen3"), "qwen3, F32 weights", "auto");
}
// Scalar: the SIMD kernels round activations to 8 bits, which would drown the difference.
TEST_P(KvCacheTypeTest, Qwen2) {
  ExpectCloseToF32(ReadQuantGolden("Q8_0.gguf"), "qwen2, Q8_0 weights", "reference");
}

INSTANTIATE_TEST_SUITE_P(Ranks, KvCacheTypeTest, ::testing::Values(1, 2));

TEST(KvCacheTypeRefusalTest, HeadsThatAreNotWholeBlocks) {
  config::ServerConfig options = TestServerConfig(ReadArchGolden("llama").path);
  options.worker.cache.kv_cache_type = tensor::Type::kQ8_0;
  const absl::Status status = WorkerDriver::Start(options).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_NE(status.message().find("multiples of 32, the model's are 16 and 16"),
            absl::string_view::npos)
      << status;
}

}  // namespace
}  // namespace tandem::testing
