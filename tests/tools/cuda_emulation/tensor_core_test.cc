// The emulation's tensor cores: products with the fragment layouts of device/mma.h.
#include <gtest/gtest.h>

#include <random>
#include <vector>

#include "common/tensor/f16.h"
#include "kernels/cuda/device/mma.h"
#include "kernels/cuda/device/warp.h"
#include "tests/tools/cuda_emulation/run_block.h"

namespace tandem::kernels::cuda {
namespace {

using Matrix = std::vector<std::vector<float>>;

Matrix RandomMatrix(uint32_t rows, uint32_t cols, uint32_t seed) {
  std::mt19937 random(seed);
  Matrix matrix(rows, std::vector<float>(cols));
  // Small integers: products and sums are exact in every type.
  for (auto& row : matrix) {
    for (float& value : row) value = static_cast<float>(random() % 31) - 15;
  }
  return matrix;
}

// The product by `mma`, with the fragment layout of device/mma.h.
template <typename ToBits, typename Mma>
Matrix MultiplyByFragments(const Matrix& a, const Matrix& b, const Matrix& c, ToBits bits,
                           Mma mma) {
  Matrix d(16, std::vector<float>(8));
  EXPECT_EQ(
      RunBlock(
          [&] {
            const uint32_t group = threadIdx.x / 4, pair = threadIdx.x % 4;
            const auto two = [&](float low, float high) {
              return static_cast<uint32_t>(bits(low)) | static_cast<uint32_t>(bits(high)) << 16;
            };
            const auto row_pair = [&](uint32_t m, uint32_t k) { return two(a[m][k], a[m][k + 1]); };
            const auto column_pair = [&](uint32_t k) { return two(b[k][group], b[k + 1][group]); };
            const uint32_t a_words[4] = {row_pair(group, 2 * pair), row_pair(group + 8, 2 * pair),
                                         row_pair(group, 2 * pair + 8),
                                         row_pair(group + 8, 2 * pair + 8)};
            const uint32_t b_words[2] = {column_pair(2 * pair), column_pair(2 * pair + 8)};
            float sums[4] = {c[group][2 * pair], c[group][2 * pair + 1], c[group + 8][2 * pair],
                             c[group + 8][2 * pair + 1]};
            mma(sums, a_words, b_words);
            d[group][2 * pair] = sums[0];
            d[group][2 * pair + 1] = sums[1];
            d[group + 8][2 * pair] = sums[2];
            d[group + 8][2 * pair + 1] = sums[3];
          },
          kWarp),
      "");
  return d;
}

TEST(TensorCoreTest, MultipliesMatrices) {
  const Matrix a = RandomMatrix(16, 16, 1), b = RandomMatrix(16, 8, 2), c = RandomMatrix(16, 8, 3);
  Matrix expected = c;
  for (uint32_t m = 0; m < 16; ++m) {
    for (uint32_t n = 0; n < 8; ++n) {
      for (uint32_t k = 0; k < 16; ++k) expected[m][n] += a[m][k] * b[k][n];
    }
  }
  EXPECT_EQ(MultiplyByFragments(a, b, c, &tensor::FloatToBf16, &MmaBf16), expected);
  EXPECT_EQ(MultiplyByFragments(a, b, c, &tensor::FloatToHalf, &MmaF16), expected);
}

// Signed bytes of every value; the product is exact.
using ByteMatrix = std::vector<std::vector<int>>;

ByteMatrix RandomBytes(uint32_t rows, uint32_t cols, uint32_t seed) {
  std::mt19937 random(seed);
  ByteMatrix matrix(rows, std::vector<int>(cols));
  for (auto& row : matrix) {
    for (int& value : row) value = static_cast<int>(random() % 256) - 128;
  }
  return matrix;
}

// The product by `mma`, with the fragment layout of device/mma.h.
template <typename Mma>
ByteMatrix MultiplyBytes(const ByteMatrix& a, const ByteMatrix& b, Mma mma) {
  ByteMatrix d(16, std::vector<int>(8));
  EXPECT_EQ(RunBlock(
                [&] {
                  const uint32_t group = threadIdx.x / 4, pair = threadIdx.x % 4;
                  const auto four = [&](auto value) {
                    uint32_t word = 0;
                    for (uint32_t i = 0; i < 4; ++i) word |= (value(i) & 0xffu) << (8 * i);
                    return word;
                  };
                  const auto of_a = [&](uint32_t m, uint32_t k) {
                    return four([&](uint32_t i) { return static_cast<uint32_t>(a[m][k + i]); });
                  };
                  const auto of_b = [&](uint32_t k) {
                    return four([&](uint32_t i) { return static_cast<uint32_t>(b[k + i][group]); });
                  };
                  const uint32_t k = 4 * pair;
                  const uint32_t a_words[4] = {of_a(group, k), of_a(group + 8, k),
                                               of_a(group, k + 16), of_a(group + 8, k + 16)};
                  const uint32_t b_words[2] = {of_b(k), of_b(k + 16)};
                  int sums[4];
                  mma(sums, a_words, b_words);
                  for (uint32_t i = 0; i < 4; ++i) d[group + i / 2 * 8][2 * pair + i % 2] = sums[i];
                },
                kWarp),
            "");
  return d;
}

TEST(TensorCoreTest, MultipliesBytes) {
  const ByteMatrix a = RandomBytes(16, 32, 4), b = RandomBytes(32, 8, 5);
  constexpr int kC = 1 << 20;
  const auto expected = [&](uint32_t begin, uint32_t end) {
    ByteMatrix d(16, std::vector<int>(8, kC));
    for (uint32_t m = 0; m < 16; ++m) {
      for (uint32_t n = 0; n < 8; ++n) {
        for (uint32_t k = begin; k < end; ++k) d[m][n] += a[m][k] * b[k][n];
      }
    }
    return d;
  };
  EXPECT_EQ(MultiplyBytes(a, b,
                          [](int(&d)[4], const uint32_t(&a_words)[4], const uint32_t(&b_words)[2]) {
                            MmaInt8(d, a_words, b_words, kC);
                          }),
            expected(0, 32));
  for (const uint32_t half : {0u, 1u}) {
    EXPECT_EQ(
        MultiplyBytes(a, b,
                      [half](int(&d)[4], const uint32_t(&a_words)[4], const uint32_t(&b_words)[2]) {
                        MmaInt8Half(d, a_words[2 * half], a_words[2 * half + 1], b_words[half], kC);
                      }),
        expected(16 * half, 16 * half + 16));
  }
}

}  // namespace
}  // namespace tandem::kernels::cuda
