// GGUF blocks in packs on the device: values have the bits of tensor::Dequantize, dot products
// those of exact integer sums up to the rounding of a few float operations.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <random>
#include <string>
#include <vector>

#include "tests/kernels/cuda/blocks_kernels.h"
#include "tests/kernels/matmul_problem.h"

namespace tandem::kernels::cuda {
namespace {

using cpu::Matrix;
using tensor::Type;

class BlocksTest : public testing::TestWithParam<Type> {
 protected:
  // Packs of every type, the last of them with fewer blocks than others.
  static constexpr uint32_t kCols = 19 * 256;

  void SetUp() override {
    std::mt19937 random(7);
    for (ByteGroup& group : x_) {
      for (int8_t& byte : group.bytes)
        byte = static_cast<int8_t>(static_cast<int>(random() % 255) - 127);
      group.scale = std::ldexp(1.0f + static_cast<float>(random() % 1000) / 1000, -5);
    }
  }
  void Run(const Matrix& m) {
    row_.assign(m.row(0), m.row(0) + tensor::RowBytes(m.type, kCols));
    values_.resize(kCols);
    tensor::Dequantize(m.type, m.row(0), values_.data(), kCols);
    results_ = RunOnRow(m.type, row_, x_);
    ASSERT_EQ(results_.error, "");
  }

  std::vector<ByteGroup> x_ = std::vector<ByteGroup>(kCols / 32);
  std::vector<std::byte> row_;
  std::vector<float> values_;
  BlockResults results_;
};

TEST_P(BlocksTest, ValuesHaveTheBitsOfDequantize) {
  for (uint32_t seed = 1; seed <= 4; ++seed) {
    Run(cpu::RandomMatrix(seed, GetParam(), 1, kCols));
    cpu::ExpectSameBits(results_.single, values_, "single values");
    cpu::ExpectSameBits(results_.eights, values_, "eight at a time");
  }
}

TEST_P(BlocksTest, DotProductsOf32) {
  if (!cpu::Quantised(GetParam())) GTEST_SKIP() << "plain values have no int8 product";
  for (uint32_t seed = 11; seed <= 14; ++seed) {
    Run(cpu::RandomMatrix(seed, GetParam(), 1, kCols));
    for (size_t g = 0; g < x_.size(); ++g) {
      double exact = 0, magnitude = 0;
      for (size_t i = 0; i < 32; ++i) {
        const double product = double{values_[32 * g + i]} * x_[g].bytes[i] * x_[g].scale;
        exact += product;
        magnitude += std::fabs(product);
      }
      // Minimums and scales may cancel: the sum's parts are larger than the values by up to this.
      ASSERT_NEAR(results_.dots[g], exact, magnitude * 1e-4 + 1e-30) << "group " << g;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Types, BlocksTest, testing::ValuesIn(cpu::Types()),
                         [](const testing::TestParamInfo<Type>& param) {
                           return std::string(tensor::Name(param.param));
                         });

}  // namespace
}  // namespace tandem::kernels::cuda
