// MatMul of the cpu backend, every kernel that this machine can run: bit-equal to a scalar
// emulation of its arithmetic, close to the exact product, and the same bits for every batch and
// thread count.
#include "kernels/cpu/matmul.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <fstream>
#include <iterator>
#include <limits>
#include <memory>
#include <random>
#include <string>
#include <tuple>
#include <vector>

#include "kernels/cpu/matmul/dispatch.h"
#include "kernels/cpu/matmul/encode.h"
#include "tests/kernels/matmul_emulation.h"
#include "tests/kernels/matmul_problem.h"

namespace tandem::kernels::cpu {
namespace {

using Case = std::tuple<const MatMulKernels*, Type, bool>;  // in panels, or in rows

class MatMulTest : public testing::TestWithParam<Case> {
 protected:
  const MatMulKernels& kernels() const { return *std::get<0>(GetParam()); }
  Type type() const { return std::get<1>(GetParam()); }
  Activations form() const { return FindKernel(kernels(), type())->activations; }
  // The weight in the case's layout.
  Weight Place(const Weight& rows) {
    return std::get<2>(GetParam()) ? copies_.Add(rows, kernels().lanes) : rows;
  }
  Weight Place(const Matrix& m) { return Place(m.weight()); }
  // Columns near `wish` that the type allows; odd for plain types.
  uint32_t Cols(uint32_t wish) const {
    const uint32_t block = tensor::Traits(type()).block_values;
    return block == 1 ? wish + 5 : std::max(wish / block, 1u) * block;
  }

 private:
  PanelCopies copies_;
};

TEST_P(MatMulTest, EveryRowCountHasTheBitsOfTheEmulation) {
  const uint32_t cols = Cols(512);
  for (uint32_t rows = 1; rows <= 70; rows += rows < 35 ? 1 : 7) {
    const Matrix m = RandomMatrix(rows, type(), rows, cols);
    for (const uint32_t tokens : {1u, 2u, 9u, 35u}) {
      const std::vector<float> x = RandomFloats(rows + tokens, size_t{tokens} * cols);
      const std::vector<float> y = MultiplyOnce(kernels(), Place(m), x, tokens);
      ExpectSameBits(y, Emulate(m, x, tokens, form()), "rows " + std::to_string(rows));
      ExpectNearExact(m, x, tokens, y, form());
    }
  }
}

TEST_P(MatMulTest, EveryTokenCountAndThreadCountHasTheSameBits) {
  const uint32_t cols = Cols(256);
  const uint32_t rows = 37;
  const uint32_t kMost = 130;
  const Matrix m = RandomMatrix(3, type(), rows, cols);
  const std::vector<float> x = RandomFloats(4, size_t{kMost} * cols);
  std::vector<float> alone;
  for (uint32_t t = 0; t < kMost; ++t) {
    const std::vector<float> row(x.begin() + t * cols, x.begin() + (t + 1) * cols);
    const std::vector<float> y = MultiplyOnce(kernels(), Place(m), row, 1);
    alone.insert(alone.end(), y.begin(), y.end());
  }
  for (uint32_t tokens = 1; tokens <= kMost; ++tokens) {
    const std::vector<float> head(x.begin(), x.begin() + size_t{tokens} * cols);
    const std::vector<float> y = MultiplyOnce(kernels(), Place(m), head, tokens, 1 + tokens % 3);
    ExpectSameBits(y.data(), alone.data(), y.size(), std::to_string(tokens) + " tokens");
  }
}

TEST_P(MatMulTest, LastChunksOfAnyLength) {
  constexpr uint32_t kRows = 37;
  const uint32_t block = tensor::Traits(type()).block_values;
  for (uint32_t i = 0; i < 13; ++i) {
    const uint32_t cols = block == 1 ? 25 + 3 * i : (1 + i % 3) * block;
    const Matrix m = RandomMatrix(26 + i, type(), kRows, cols);
    for (const uint32_t tokens : {1u, 2u, 4u, 7u, 33u}) {
      const std::vector<float> x = RandomFloats(27, size_t{tokens} * cols);
      ExpectSameBits(MultiplyOnce(kernels(), Place(m), x, tokens), Emulate(m, x, tokens, form()),
                     std::to_string(cols) + " columns, " + std::to_string(tokens) + " tokens");
    }
  }
}

TEST_P(MatMulTest, ManyTokensAreCutIntoParts) {
  const uint32_t cols = Cols(64);
  const Matrix m = RandomMatrix(5, type(), 150, cols);
  for (const uint32_t tokens : {256u, 257u, 523u}) {
    const std::vector<float> x = RandomFloats(6, size_t{tokens} * cols);
    ExpectSameBits(MultiplyOnce(kernels(), Place(m), x, tokens, 2), Emulate(m, x, tokens, form()),
                   std::to_string(tokens) + " tokens");
  }
}

TEST_P(MatMulTest, LongRowsAndManyRows) {
  const uint32_t cols = Cols(4864);
  const Matrix m = RandomMatrix(7, type(), 200, cols);
  for (const uint32_t tokens : {1u, 8u, 35u}) {
    const std::vector<float> x = RandomFloats(8, size_t{tokens} * cols);
    const std::vector<float> one = MultiplyOnce(kernels(), Place(m), x, tokens, 1);
    ExpectSameBits(one, MultiplyOnce(kernels(), Place(m), x, tokens, 2), "threads");
    ExpectSameBits(one, Emulate(m, x, tokens, form()), "emulation");
  }
}

// The same rows with `gap` elements of `fill` after each.
std::vector<float> WithGaps(const std::vector<float>& dense, uint32_t cols, uint32_t gap,
                            float fill) {
  std::vector<float> rows;
  for (size_t at = 0; at < dense.size(); at += cols) {
    rows.insert(rows.end(), dense.begin() + at, dense.begin() + at + cols);
    rows.insert(rows.end(), gap, fill);
  }
  return rows;
}

// Sums go straight to y where groups of rows are whole: what is between the rows of y keeps its
// value also there.
TEST_P(MatMulTest, StridesAndBias) {
  constexpr uint32_t kGapOfX = 3, kGapOfY = 16;
  constexpr float kUntouched = -7.0f;
  const uint32_t cols = Cols(256);
  for (const uint32_t rows : {21u, 37u, 64u}) {
    const Matrix m = RandomMatrix(9, type(), rows, cols, 6 * tensor::Traits(type()).block_bytes);
    const Weight weight = Place(m);
    const std::vector<float> bias = RandomFloats(10, rows);
    for (const uint32_t tokens : {1u, 3u, 4u, 5u, 20u, 40u}) {
      const std::vector<float> dense_x = RandomFloats(11, size_t{tokens} * cols);
      const std::vector<float> x = WithGaps(dense_x, cols, kGapOfX, 1e9f);
      std::vector<float> expected = Emulate(m, dense_x, tokens, form());
      for (const bool biased : {false, true}) {
        if (biased) {
          for (size_t i = 0; i < expected.size(); ++i) expected[i] += bias[i % rows];
        }
        std::vector<float> y(size_t{tokens} * (rows + kGapOfY), kUntouched);
        RunMatMul(kernels(), 2,
                  OneProjection(weight, x.data(), tokens, cols + kGapOfX,
                                biased ? bias.data() : nullptr, y.data(), rows + kGapOfY));
        ExpectSameBits(y, WithGaps(expected, rows, kGapOfY, kUntouched),
                       std::to_string(rows) + " rows, " + std::to_string(tokens) + " tokens" +
                           (biased ? ", bias" : ""));
      }
    }
  }
}

// Whatever the loop: rounded once by the factor, and then by the bias.
TEST_P(MatMulTest, ScaledProductsOfEveryNumberOfTokens) {
  constexpr uint32_t kMost = 40;
  const uint32_t cols = Cols(256);
  const float scale = 0.37f;
  for (const uint32_t rows : {37u, 64u}) {
    const Matrix m = RandomMatrix(31, type(), rows, cols);
    Weight weight = Place(m);
    weight.scales = &scale;
    const std::vector<float> bias = RandomFloats(32, rows);
    const std::vector<float> x = RandomFloats(33, size_t{kMost} * cols);
    std::vector<float> expected = Emulate(m, x, kMost, form());
    for (float& value : expected) value *= scale;
    for (const bool biased : {false, true}) {
      for (size_t i = 0; biased && i < expected.size(); ++i) expected[i] += bias[i % rows];
      for (uint32_t tokens = 1; tokens <= kMost; ++tokens) {
        std::vector<float> y(size_t{tokens} * rows);
        RunMatMul(kernels(), 2,
                  OneProjection(weight, x.data(), tokens, cols, biased ? bias.data() : nullptr,
                                y.data(), rows));
        ExpectSameBits(y.data(), expected.data(), y.size(),
                       std::to_string(tokens) + " tokens" + (biased ? ", bias" : ""));
      }
    }
  }
}

TEST_P(MatMulTest, CutsInsideBlocksCountAsZeros) {
  const uint32_t cols = Cols(1024);
  const Matrix m = RandomMatrix(12, type(), 19, cols);
  const uint32_t cuts[][2] = {
      {0, cols}, {0, 100},        {100, 200},    {256, 256}, {257, 1},
      {255, 3},  {31, cols - 31}, {cols - 1, 1}, {512, 448}, {cols / 2, cols / 2}};
  for (const auto& [begin, count] : cuts) {
    Weight weight = m.weight();
    weight.col_begin = begin;
    weight.col_count = count;
    for (const uint32_t tokens : {1u, 7u, 35u}) {
      const std::vector<float> x = RandomFloats(begin + count, size_t{tokens} * count);
      std::vector<float> full(size_t{tokens} * cols, 0.0f);
      for (uint32_t t = 0; t < tokens; ++t) {
        std::copy_n(x.begin() + t * count, count, full.begin() + t * cols + begin);
      }
      const std::vector<float> y = MultiplyOnce(kernels(), Place(weight), x, tokens);
      // A plain weight starts its chains at the cut, so only the value is the same.
      if (Quantised(type()))
        ExpectSameBits(y, Emulate(m, full, tokens, form()), std::to_string(begin));
      ExpectNearExact(m, full, tokens, y, form());
    }
  }
}

// Scales at random; other bytes are `fill`, or, if that is negative, any of some.
Matrix MatrixOfLimits(Type type, uint32_t rows, uint32_t cols, int fill) {
  constexpr uint8_t kFills[] = {0x00, 0x0f, 0xf0, 0x77, 0x7f, 0x80, 0xff};
  std::mt19937 random(23);
  Matrix m = RandomMatrix(24, type, rows, cols);
  const uint64_t bytes = m.rows * m.stride;
  for (uint64_t i = 0; i < bytes; ++i) {
    m.data[i] = static_cast<std::byte>(fill < 0 ? kFills[random() % std::size(kFills)] : fill);
  }
  for (uint64_t at = 0; at < bytes; at += tensor::Traits(type).block_bytes) {
    if (type == Type::kMXFP4 || type == Type::kNVFP4) {  // scales are bytes
      std::fill_n(m.data.get() + at, type == Type::kMXFP4 ? 1 : 4, std::byte{100});
      continue;
    }
    for (const size_t half : HalvesOf(type)) {
      PutHalf(type, half, RandomHalf(random), m.data.get() + at);
    }
  }
  return m;
}

// Activations of 1 and -1, whose bytes are 127 and -127: alike, in pairs, and at random.
std::vector<std::vector<float>> ActivationsAtTheirLimits(size_t count) {
  std::vector<std::vector<float>> all(4, std::vector<float>(count, 1.0f));
  std::mt19937 random(25);
  for (size_t i = 0; i < count; ++i) {
    all[1][i] = -1.0f;
    if (i / 2 % 2 == 0) all[2][i] = -1.0f;
    if (random() % 2 == 0) all[3][i] = -1.0f;
  }
  return all;
}

// The largest sums of products: no narrow integer overflows, and none is added to another's.
TEST_P(MatMulTest, BytesAtTheirLimits) {
  if (!Quantised(type())) return;
  constexpr uint32_t kMostTokens = 40;
  const uint32_t cols = Cols(512);
  for (const int fill : {0x00, 0x77, 0x7f, 0x80, 0xff, -1}) {
    const Matrix m = MatrixOfLimits(type(), 17, cols, fill);
    for (const std::vector<float>& x : ActivationsAtTheirLimits(size_t{kMostTokens} * cols)) {
      const std::vector<float> expected = Emulate(m, x, kMostTokens, form());
      for (const uint32_t tokens : {1u, 4u, 8u, 9u, 16u, 31u, kMostTokens}) {
        const std::vector<float> y = MultiplyOnce(kernels(), Place(m), x, tokens);
        ExpectSameBits(y.data(), expected.data(), y.size(),
                       std::to_string(fill) + " " + std::to_string(tokens));
      }
    }
  }
}

TEST_P(MatMulTest, GoldenBlocks) {
  constexpr uint32_t kRows = 8, kCols = 512;
  const std::string path = "tests/golden/quant/" + std::string(tensor::Name(type())) + ".bin";
  std::vector<char> bytes;
  if (type() == Type::kF32) {
    std::ifstream in("tests/golden/quant/source.f32", std::ios::binary);
    bytes.assign(std::istreambuf_iterator<char>(in), {});
  } else {
    std::ifstream in(path, std::ios::binary);
    bytes.assign(std::istreambuf_iterator<char>(in), {});
  }
  const uint64_t row_bytes = tensor::RowBytes(type(), kCols);
  ASSERT_EQ(bytes.size(), kRows * row_bytes) << path;
  Matrix m{type(), kRows, kCols, row_bytes, std::make_unique<std::byte[]>(bytes.size())};
  std::memcpy(m.data.get(), bytes.data(), bytes.size());
  for (const uint32_t tokens : {1u, 33u}) {
    std::vector<float> x = RandomFloats(13, size_t{tokens} * kCols, 0.0f);
    for (size_t i = 0; i < x.size(); i += 97) x[i] *= 100.0f;
    const std::vector<float> y = MultiplyOnce(kernels(), Place(m), x, tokens);
    ExpectSameBits(y, Emulate(m, x, tokens, form()), "golden");
    ExpectNearExact(m, x, tokens, y, form());
  }
}

TEST_P(MatMulTest, TransposedValuesAreThoseOfTheFormat) {
  const uint32_t cols = Cols(512);
  for (const uint32_t rows : {1u, 16u, 37u}) {
    const Matrix m = RandomMatrix(17 + rows, type(), rows, cols);
    const uint32_t stride = (rows + 15) / 16 * 16;
    std::vector<float> out(size_t{cols} * stride, NAN);
    FindKernel(kernels(), type())
        ->transpose({m.data.get(), m.stride, rows, cols}, out.data(), stride);
    std::vector<float> row(cols);
    for (uint32_t r = 0; r < rows; ++r) {
      tensor::Dequantize(type(), m.row(r), row.data(), cols);
      for (uint32_t c = 0; c < cols; ++c) {
        ExpectSameBits(&out[size_t{c} * stride + r], &row[c], 1, "column " + std::to_string(c));
      }
    }
  }
}

TEST_P(MatMulTest, ZeroAndTinyActivations) {
  const uint32_t cols = Cols(256);
  const Matrix m = RandomMatrix(14, type(), 16, cols);
  for (const float value : {0.0f, -0.0f, 1e-42f, 1e-36f, 1e-29f}) {
    const std::vector<float> x(cols, value);
    const std::vector<float> y = MultiplyOnce(kernels(), Place(m), x, 1);
    for (const float out : y) {
      EXPECT_TRUE(std::isfinite(out)) << value;
      EXPECT_LE(std::fabs(out), 1e-20f) << value;
      if (value == 0.0f) {
        EXPECT_EQ(out, 0.0f);
      }
    }
  }
}

TEST_P(MatMulTest, ValuesThatAreNotFiniteStayInTheirRow) {
  const uint32_t cols = Cols(256);
  const Matrix m = RandomMatrix(15, type(), 33, cols);
  constexpr float kInf = std::numeric_limits<float>::infinity();
  for (const float bad : {NAN, kInf, -kInf, std::numeric_limits<float>::max()}) {
    for (const uint32_t tokens : {3u, 20u}) {
      const std::vector<float> x = RandomFloats(16, size_t{tokens} * cols);
      std::vector<float> poisoned = x;
      poisoned[cols + 40] = bad;  // of token 1
      const std::vector<float> clean = MultiplyOnce(kernels(), Place(m), x, tokens);
      const std::vector<float> y = MultiplyOnce(kernels(), Place(m), poisoned, tokens);
      for (uint32_t t = 0; t < tokens; ++t) {
        const size_t at = size_t{t} * m.rows;
        if (t != 1) ExpectSameBits(&y[at], &clean[at], m.rows, "beside a bad row");
      }
      if (!std::isfinite(bad)) {
        EXPECT_FALSE(std::isfinite(y[m.rows]));
      }
    }
  }
}

// Names of tests have no dashes.
std::string TestName(const MatMulKernels& kernels) {
  std::string name = kernels.name;
  for (char& c : name) c = c == '-' ? '_' : c;
  return name;
}

// Every kernel, in either layout; sets share some.
std::vector<Case> Cases() {
  std::vector<Case> cases;
  std::vector<decltype(Kernel::run)> seen;
  for (const MatMulKernels* kernels : RunnableKernels()) {
    for (const Type type : Types()) {
      const auto run = FindKernel(*kernels, type)->run;
      if (std::find(seen.begin(), seen.end(), run) != seen.end()) continue;
      seen.push_back(run);
      for (const bool panels : {false, true}) cases.emplace_back(kernels, type, panels);
    }
  }
  return cases;
}

INSTANTIATE_TEST_SUITE_P(MatMulKernels, MatMulTest, testing::ValuesIn(Cases()),
                         [](const testing::TestParamInfo<Case>& param) {
                           return TestName(*std::get<0>(param.param)) + "_" +
                                  std::string(tensor::Name(std::get<1>(param.param))) +
                                  (std::get<2>(param.param) ? "_panels" : "_rows");
                         });

class MergedTest : public testing::TestWithParam<const MatMulKernels*> {};

TEST_P(MergedTest, ThreeProjectionsOfMixedTypesAndLayoutsEqualEachAlone) {
  const uint32_t cols = 512;
  const Type mixes[][3] = {
      {Type::kQ4_K, Type::kQ8_0, Type::kF32},    {Type::kQ5_0, Type::kQ6_K, Type::kQ4_0},
      {Type::kQ2_K, Type::kQ5_1, Type::kIQ4_XS}, {Type::kMXFP4, Type::kQ3_K, Type::kQ4_1},
      {Type::kIQ4_NL, Type::kQ5_K, Type::kBF16}, {Type::kF16, Type::kBF16, Type::kQ8_0},
      {Type::kF32, Type::kF32, Type::kF32},      {Type::kIQ3_XXS, Type::kIQ1_S, Type::kTQ2_0},
      {Type::kIQ2_S, Type::kQ2_0, Type::kQ6_K},  {Type::kNVFP4, Type::kMXFP4, Type::kF16}};
  for (const auto& mix : mixes) {
    for (const auto& [begin, count] : {std::pair{0u, cols}, std::pair{96u, 300u}}) {
      for (const uint32_t tokens : {1u, 4u, 50u}) {
        const std::vector<float> x = RandomFloats(21, size_t{tokens} * count);
        const uint32_t rows[3] = {70, 16, 5};
        MatMulParams params = {x.data(), tokens, count, 3, {}};
        std::vector<Matrix> matrices;
        std::vector<std::vector<float>> merged, alone;
        PanelCopies copies;
        for (int i = 0; i < 3; ++i) {
          matrices.push_back(RandomMatrix(i, mix[i], rows[i], cols));
          merged.emplace_back(size_t{tokens} * rows[i], NAN);
        }
        for (int i = 0; i < 3; ++i) {
          Weight weight = matrices[i].weight();
          weight.col_begin = begin;
          weight.col_count = count;
          alone.push_back(MultiplyOnce(*GetParam(), weight, x, tokens));
          if (i != 1) weight = copies.Add(weight, GetParam()->lanes);
          params.projections[i] = {weight, nullptr, merged[i].data(), rows[i]};
        }
        RunMatMul(*GetParam(), 2, params);
        for (int i = 0; i < 3; ++i) ExpectSameBits(merged[i], alone[i], std::to_string(i));
      }
    }
  }
}

TEST_P(MergedTest, NothingToDo) {
  const Matrix m = RandomMatrix(1, Type::kQ8_0, 4, 64);
  host::OpList list(2);
  list.Clear(EncodeMode::kRun);
  EncodeMatMulWith(list, OneProjection(m.weight(), nullptr, 0, 64, nullptr, nullptr, 4),
                   *GetParam());
  EXPECT_TRUE(list.entries().empty());
}

INSTANTIATE_TEST_SUITE_P(MatMulKernels, MergedTest, testing::ValuesIn(RunnableKernels()),
                         [](const auto& param) { return TestName(*param.param); });

TEST(CanMatMulTest, ExactlyTheSupportedTypes) {
  for (uint32_t number = 0; number < 64; ++number) {
    const auto traits = tensor::FindTypeTraits(number);
    if (!traits.has_value()) continue;
    EXPECT_EQ(CanMatMul(traits->type), traits->supported) << traits->name;
  }
}

TEST(EncodeMatMulTest, TakesTheBestKernelsOfTheInstructionSet) {
  for (const Isa isa : {Isa::kAvx2, Isa::kAvx2Vnni, Isa::kAvx512}) {
    if (!MissingInstructions(isa).empty()) continue;
    const std::string kernels = BestKernels(isa).name;
    if (isa == Isa::kAvx512) {
      EXPECT_EQ(kernels.substr(0, 6), "avx512");
    } else {
      EXPECT_EQ(kernels, Name(isa));
    }
    const Matrix m = RandomMatrix(1, Type::kQ8_0, 30, 64);
    const std::vector<float> x = RandomFloats(2, 64);
    std::vector<float> y(30);
    host::OpList list(1);
    list.Clear(EncodeMode::kRun);
    EncodeMatMul(list, OneProjection(m.weight(), x.data(), 1, 64, nullptr, y.data(), 30), isa);
    RunList(list);
    ExpectSameBits(y, Emulate(m, x, 1, Activations::kQuantBlocks), Name(isa));
  }
}

}  // namespace
}  // namespace tandem::kernels::cpu
