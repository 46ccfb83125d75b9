// How far panels are fetched ahead changes no bit of a product. A machine's own way is tested with
// all products; this tests every way on every machine.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <random>
#include <string>
#include <vector>

#include "common/tensor/type.h"
#include "kernels/cpu/matmul/dispatch.h"
#include "kernels/cpu/matmul/product.h"
#include "kernels/host/panels.h"

namespace tandem::kernels::cpu {
namespace {

using tensor::Type;

constexpr uint32_t kRows = 80, kCols = 1024;

struct alignas(64) Line {
  uint64_t words[8];
};

// As halves between 2^-5 and 2^-3, as floats about 1e-14, as exponents of MXFP4 those of normal
// floats.
std::vector<Line> FiniteBits(size_t bytes) {
  std::mt19937_64 random(1);
  std::vector<Line> lines(bytes / sizeof(Line) + 1);
  for (Line& line : lines) {
    for (uint64_t& word : line.words) word = (random() & 0x0757075707570757) | 0x2828282828282828;
  }
  return lines;
}

size_t StrideOf(Activations activations) {
  switch (activations) {
    case Activations::kFloats:
      return kCols;
    case Activations::kBf16Pairs:
      return kCols / 2;
    case Activations::kQuantBlocks:
      break;
  }
  return kCols / 32;
}

std::vector<float> Multiply(const MatMulKernels& kernels, Type type, uint32_t tokens,
                            PanelAhead ahead) {
  const Kernel& kernel = *FindKernel(kernels, type);
  const uint64_t row_bytes = host::PanelRowBytes(type, kCols);
  const std::vector<Line> weights = FiniteBits(kRows * row_bytes);
  const std::vector<Line> x = FiniteBits(size_t{tokens} * kCols * sizeof(float));
  std::vector<float> y(size_t{tokens} * kRows);
  const Product product = {
      .weights = reinterpret_cast<const std::byte*>(weights.data()),
      .stride_bytes = row_bytes,
      .in_panels = true,
      .rows = kRows,
      .cols = kCols,
      .x = x.data(),
      .x_stride = StrideOf(kernel.activations),
      .bias = nullptr,
      .y = y.data(),
      .y_stride = kRows,
      .ahead = ahead,
  };
  std::vector<Line> scratch(kernel.scratch_bytes(kCols) / sizeof(Line) + 1);
  kernel.run(product, {0, kRows, 0, tokens}, reinterpret_cast<std::byte*>(scratch.data()));
  return y;
}

TEST(PanelAhead, ChangesNoBit) {
  for (const MatMulKernels* kernels : RunnableKernels()) {
    for (const Type type : {Type::kQ8_0, Type::kQ4_0, Type::kQ4_K, Type::kQ6_K, Type::kMXFP4,
                            Type::kNVFP4, Type::kF16, Type::kBF16, Type::kF32}) {
      for (const uint32_t tokens : {1u, 4u, 5u, 16u}) {
        SCOPED_TRACE(std::string(kernels->name) + " " + std::string(tensor::Name(type)) + " " +
                     std::to_string(tokens));
        const std::vector<float> expected = Multiply(*kernels, type, tokens, kToL2ThenL1);
        EXPECT_THAT(expected, testing::Each(testing::Ne(0)));
        for (const PanelAhead ahead : {BestPanelAhead(), PanelAhead{0, 10240}, PanelAhead{0, 64}}) {
          const std::vector<float> found = Multiply(*kernels, type, tokens, ahead);
          EXPECT_EQ(std::memcmp(found.data(), expected.data(), found.size() * sizeof(float)), 0);
        }
      }
    }
  }
}

}  // namespace
}  // namespace tandem::kernels::cpu
