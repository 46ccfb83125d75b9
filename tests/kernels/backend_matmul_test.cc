// MatMul on every backend and weight type, through the Backend: close to the exact product whatever
// the shape, the number of tokens and the cut, and rows that don't depend on each other, except on
// cuda where a library multiplies them.
//
// How close: the reference multiplies floats; cpu rounds activations to bytes for block-quantised
// weights; so does cuda with one token, with more it rounds both to BF16, and with up to 128 a
// weight's scale and minimum before.
// There, from 3 tokens on, BF16 weights are multiplied by activations in BF16, F16 by F16.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "tests/kernels/matmul_call.h"
#include "tests/kernels/matmul_emulation.h"

namespace tandem::kernels {
namespace {

using cpu::Matrix;
using cpu::RandomFloats;
using tensor::Type;

// Up to here cuda does without cuBLASLt: quantised weights are multiplied as they are, with one
// token in bytes, and plain ones in floats.
constexpr uint32_t kMostInPlace = 128;
constexpr uint32_t MostInFloats(Type type) { return type == Type::kF32 ? 8 : 2; }

class BackendMatMulTest : public testing::TestWithParam<BackendCase> {
 protected:
  // What the backend does to its inputs before it multiplies them.
  bool ToBytes(Type type, uint32_t tokens) const {
    if (GetParam().kernels == "reference" || !cpu::Quantised(type)) return false;
    return !GetParam().cuda() || tokens == 1;
  }
  // Of a product, relative to it.
  double RoundingOf(Type type, uint32_t tokens) const {
    if (cpu::RoundsToBf16(GetParam().kernels, type)) return cpu::kBf16Rounding;
    if (!GetParam().cuda() || type == Type::kF32) return 0;
    if (tokens <= (cpu::Quantised(type) ? 1 : MostInFloats(type))) return 0;
    if (cpu::Quantised(type) && tokens <= kMostInPlace) return 3 * cpu::kBf16Rounding;
    return type == Type::kF16 ? 0x1p-11 : 0x1p-7;
  }
  // What each weight's minimum adds to that: it is rounded apart from the weight.
  std::vector<float> MinErrors(const Matrix& m, uint32_t row, uint32_t tokens) const {
    std::vector<float> errors(m.cols);
    if (!GetParam().cuda() || !cpu::Quantised(m.type)) return errors;
    if (tokens == 1 || tokens > kMostInPlace) return errors;
    size_t at = 0;
    for (const Group& group : GroupsOf(m.type, m.row(row), m.cols))
      for (size_t i = 0; i < group.q.size(); ++i) errors[at++] = 0x1p-7f * std::fabs(group.min);
    return errors;
  }
  // Columns near `wish` that the type allows; odd for plain types.
  static uint32_t Cols(Type type, uint32_t wish) {
    const uint32_t block = tensor::Traits(type).block_values;
    return block == 1 ? wish + 5 : std::max(wish / block, 1u) * block;
  }

  void ExpectNear(const Part& part, const Input& input, const std::vector<float>& y) const {
    const Matrix& m = part.matrix;
    const std::vector<float> steps = Steps(m.type, input);
    const double product_error = RoundingOf(m.type, input.tokens);
    // F32 has to be exact up to the order of float sums.
    const double sum_error = m.type == Type::kF32 ? 1e-5 : 1e-4;
    std::vector<float> w(m.cols);
    ASSERT_EQ(y.size(), size_t{input.tokens} * m.rows);
    for (uint32_t r = 0; r < m.rows; ++r) {
      tensor::Dequantize(m.type, m.row(r), w.data(), m.cols);
      for (float& value : w) value *= part.scale;
      const std::vector<float> min_errors = MinErrors(m, r, input.tokens);
      for (uint32_t t = 0; t < input.tokens; ++t) {
        double exact = part.bias.empty() ? 0.0 : part.bias[r];
        double magnitude = std::fabs(exact), rounding = 0;
        for (uint32_t c = 0; c < input.col_count; ++c) {
          const size_t at = size_t{t} * input.col_count + c;
          const double weight = w[input.col_begin + c];
          exact += weight * input.x[at];
          magnitude += std::fabs(weight * input.x[at]);
          rounding += std::fabs(weight) * steps[at];
          rounding += min_errors[input.col_begin + c] * std::fabs(input.x[at]);
        }
        const double slack =
            rounding + magnitude * product_error + (magnitude + rounding) * sum_error + 1e-30;
        ASSERT_NEAR(y[size_t{t} * m.rows + r], exact, slack)
            << tensor::Name(m.type) << ", " << input.tokens << " tokens, row " << r << " token "
            << t;
      }
    }
  }

 private:
  // How far rounding to bytes may move each value of x: half a step of its group of 32 columns.
  std::vector<float> Steps(Type type, const Input& input) const {
    std::vector<float> steps(input.x.size());
    if (!ToBytes(type, input.tokens)) return steps;
    for (uint32_t t = 0; t < input.tokens; ++t) {
      const float* const x = &input.x[size_t{t} * input.col_count];
      for (uint32_t begin = 0; begin < input.col_count;) {
        const uint32_t end =
            std::min((input.col_begin + begin) / 32 * 32 + 32 - input.col_begin, input.col_count);
        float largest = 0;
        for (uint32_t c = begin; c < end; ++c) largest = std::max(largest, std::fabs(x[c]));
        for (; begin < end; ++begin) {
          steps[size_t{t} * input.col_count + begin] = largest / 127.0f * 0.5001f;
        }
      }
    }
    return steps;
  }
};

TEST_P(BackendMatMulTest, EveryTypeAndNumberOfTokens) {
  Rig rig(GetParam());
  for (const Type type : cpu::Types()) {
    const uint32_t cols = Cols(type, 512);
    const Part part = MakePart(1, type, 21, cols, false);
    for (const uint32_t tokens : {1u, 2u, 3u, 5u, 8u, 9u, 40u, 129u}) {
      const Input input = MakeInput(tokens, tokens, 0, cols);
      ExpectNear(part, input, Multiply(rig, {&part}, input)[0]);
    }
  }
}

// On cuda scales are in packs, which only one type has a place for.
TEST_P(BackendMatMulTest, ScaledProducts) {
  Rig rig(GetParam());
  const std::vector<Type> types =
      GetParam().cuda()
          ? std::vector{Type::kNVFP4}
          : std::vector{Type::kNVFP4, Type::kF32, Type::kBF16, Type::kQ8_0, Type::kQ4_K};
  for (const Type type : types) {
    const uint32_t cols = Cols(type, 1280);
    Part part = MakePart(28, type, 37, cols, true);
    for (const uint32_t tokens : {1u, 2u, 3u, 8u, 9u, 40u, 129u}) {
      const Input input = MakeInput(tokens, tokens, 0, cols);
      for (const float scale : {0.37f, -3.0f}) {
        part.scale = scale;
        ExpectNear(part, input, Multiply(rig, {&part}, input)[0]);
      }
      // A power of two changes no bits.
      Part plain = MakePart(28, type, 37, cols, false);
      auto expected = Multiply(rig, {&plain}, input)[0];
      for (float& value : expected) value *= 0.25f;
      plain.scale = 0.25f;
      ExpectSameBits(Multiply(rig, {&plain}, input)[0], expected);
    }
  }
}

TEST_P(BackendMatMulTest, EveryNumberOfRows) {
  Rig rig(GetParam());
  for (const Type type : {Type::kF32, Type::kF16, Type::kQ8_0, Type::kQ4_K}) {
    const uint32_t cols = Cols(type, 64);
    for (uint32_t rows = 1; rows <= 9; ++rows) {
      const Part part = MakePart(rows, type, rows, cols, true);
      for (const uint32_t tokens : {1u, 8u, 9u}) {
        const Input input = MakeInput(tokens, tokens, 0, cols);
        ExpectNear(part, input, Multiply(rig, {&part}, input)[0]);
      }
    }
  }
}

// Longer than the threads of a block take at once.
TEST_P(BackendMatMulTest, LongRows) {
  Rig rig(GetParam());
  for (const Type type : {Type::kF32, Type::kBF16, Type::kQ4_0, Type::kQ6_K}) {
    const uint32_t cols = Cols(type, 5 * 1024);
    const Part part = MakePart(3, type, 7, cols, false);
    for (const uint32_t tokens : {1u, 4u, 12u}) {
      const Input input = MakeInput(tokens, tokens, 0, cols);
      ExpectNear(part, input, Multiply(rig, {&part}, input)[0]);
    }
  }
}

TEST_P(BackendMatMulTest, StridesAndAddressesOfAllSorts) {
  Rig rig(GetParam());
  for (const Type type : cpu::Types()) {
    const uint32_t cols = Cols(type, 256);
    const Part part = MakePart(4, type, 13, cols, true);
    for (const uint32_t tokens : {1u, 5u, 9u}) {
      const Input input = MakeInput(tokens, tokens, 0, cols);
      for (const Layout layout : {Layout{3, 1, 4}, Layout{4, 0, 3}, Layout{8, 4, 0}}) {
        ExpectNear(part, input, Multiply(rig, {&part}, input, layout)[0]);
      }
    }
  }
}

// Rows of x that begin at multiples of 16 bytes and end anywhere: the value after the end is NaN.
TEST_P(BackendMatMulTest, AlignedRowsOfEveryLength) {
  Rig rig(GetParam());
  for (const Type type : {Type::kF32, Type::kF16, Type::kBF16, Type::kQ4_0}) {
    const Part part = MakePart(20, type, 5, 256, false);
    for (uint32_t count = 240; count <= 248; ++count) {
      for (const uint32_t begin : {0u, 8u}) {
        for (const uint32_t tokens : {1u, 2u, 9u}) {
          const Input input = MakeInput(count, tokens, begin, count);
          ExpectNear(part, input, Multiply(rig, {&part}, input, {256 - count, 0, 0})[0]);
        }
      }
    }
  }
}

TEST_P(BackendMatMulTest, CutsInsideBlocksCountAsZeros) {
  Rig rig(GetParam());
  for (const Type type : cpu::Types()) {
    const uint32_t cols = Cols(type, 512);
    const Part part = MakePart(5, type, 9, cols, false);
    const std::pair<uint32_t, uint32_t> cuts[] = {{0, 100}, {100, 200},      {256, 256},   {257, 1},
                                                  {255, 3}, {31, cols - 31}, {cols - 1, 1}};
    for (const auto& [begin, count] : cuts) {
      for (const uint32_t tokens : {1u, 7u, 11u}) {
        const Input input = MakeInput(begin + count, tokens, begin, count);
        ExpectNear(part, input, Multiply(rig, {&part}, input)[0]);
      }
    }
  }
}

TEST_P(BackendMatMulTest, SeveralProjectionsHaveTheBitsOfEachAlone) {
  Rig rig(GetParam());
  const Type mixes[][3] = {
      {Type::kQ4_K, Type::kQ4_K, Type::kQ6_K},   {Type::kQ8_0, Type::kF32, Type::kQ8_0},
      {Type::kQ2_K, Type::kQ5_1, Type::kIQ4_XS}, {Type::kF16, Type::kBF16, Type::kF16},
      {Type::kF32, Type::kF32, Type::kF32},      {Type::kMXFP4, Type::kQ3_K, Type::kBF16},
      {Type::kQ3_K, Type::kQ5_K, Type::kQ2_K},   {Type::kQ6_K, Type::kIQ4_XS, Type::kQ5_K},
      {Type::kQ4_0, Type::kQ8_0, Type::kQ5_0},   {Type::kIQ4_NL, Type::kQ5_1, Type::kQ4_1},
      {Type::kMXFP4, Type::kQ8_0, Type::kMXFP4}, {Type::kIQ2_XXS, Type::kQ2_K, Type::kIQ2_XXS},
      {Type::kIQ3_S, Type::kIQ1_M, Type::kQ4_K}, {Type::kQ1_0, Type::kTQ1_0, Type::kQ8_0},
      {Type::kNVFP4, Type::kMXFP4, Type::kNVFP4}};
  const uint32_t cols = 512;
  for (const auto& mix : mixes) {
    const Part parts[] = {MakePart(6, mix[0], 37, cols, true), MakePart(7, mix[1], 16, cols, false),
                          MakePart(8, mix[2], 5, cols, true)};
    for (const auto& [begin, count] : {std::pair{0u, cols}, std::pair{96u, 300u}}) {
      for (const uint32_t tokens : {1u, 2u, 4u, 9u, 20u}) {
        const Input input = MakeInput(tokens, tokens, begin, count);
        const auto merged = Multiply(rig, {&parts[0], &parts[1], &parts[2]}, input);
        for (size_t i = 0; i < 3; ++i) {
          ExpectNear(parts[i], input, merged[i]);
          ExpectSameBits(merged[i], Multiply(rig, {&parts[i]}, input)[0]);
        }
      }
    }
  }
}

// From these on a row's bits do not depend on how many there are.
uint32_t FewestAlike(const BackendCase& c, Type type) {
  return c.cuda() && cpu::Quantised(type) ? 2 : 1;
}
// Beyond these cuda multiplies by a library, whose sums depend on the shape: there rows are only
// near each other.
uint32_t MostAlike(const BackendCase& c, Type type) {
  if (!c.cuda()) return 256;
  return cpu::Quantised(type) ? kMostInPlace : MostInFloats(type);
}

TEST_P(BackendMatMulTest, ARowsBitsDependOnlyOnIt) {
  for (const Type type : cpu::Types()) {
    Rig rig(GetParam());
    const uint32_t cols = Cols(type, 512), rows = 11;
    const Part part = MakePart(9, type, rows, cols, true);
    const Input all = MakeInput(10, 256, 0, cols);
    std::vector<float> alone;
    for (uint32_t t = 0; t < 20; ++t) {
      const auto y = Multiply(rig, {&part}, all.Slice(t, FewestAlike(GetParam(), type)))[0];
      alone.insert(alone.end(), y.begin(), y.begin() + rows);
    }
    for (const uint32_t tokens : {2u, 3u, 4u, 5u, 8u, 9u, 16u, 17u, 20u, 33u, 64u, 128u, 256u}) {
      if (tokens > MostAlike(GetParam(), type)) break;
      if (tokens >= 128 && GetParam().slow() && type != Type::kQ4_K) continue;
      auto y = Multiply(rig, {&part}, all.First(tokens))[0];
      const size_t first = std::min(size_t{tokens} * rows, alone.size());
      y.resize(first);
      ExpectSameBits(y, {alone.begin(), alone.begin() + static_cast<ptrdiff_t>(first)});
    }
  }
}

// A tile's last row and last token; a group of columns in each place of its 256; more 256s than
// there are stages; weights so tall that tiles are.
TEST_P(BackendMatMulTest, TilesHaveTheBitsOfFewRows) {
  const struct {
    uint32_t rows, begin, count;
  } shapes[] = {{70, 0, 256}, {33, 96, 300}, {5, 0, 1280}, {31, 1100, 150}, {300, 0, 256}};
  for (const Type type : cpu::Types()) {
    if (!cpu::Quantised(type)) continue;
    Rig rig(GetParam());
    for (const auto& [rows, begin, count] : shapes) {
      if (rows == 300 && type != Type::kQ4_0 && type != Type::kQ6_K) continue;
      const Part part = MakePart(26, type, rows, 1280, true);
      const Input all = MakeInput(27, 46, begin, count);
      for (const uint32_t tokens : {7u, 45u}) {
        const auto y = Multiply(rig, {&part}, all.First(tokens))[0];
        for (const uint32_t t : {0u, tokens / 2, tokens - 1}) {
          const auto at = y.begin() + static_cast<ptrdiff_t>(size_t{t} * rows);
          auto few = Multiply(rig, {&part}, all.Slice(t, FewestAlike(GetParam(), type)))[0];
          few.resize(rows);
          ExpectSameBits({at, at + rows}, few);
        }
      }
    }
  }
}

TEST_P(BackendMatMulTest, ValuesThatAreNotFiniteStayInTheirRow) {
  constexpr float kInf = std::numeric_limits<float>::infinity();
  for (const Type type : {Type::kF32, Type::kF16, Type::kQ8_0, Type::kQ4_K, Type::kMXFP4}) {
    Rig rig(GetParam());
    const uint32_t cols = Cols(type, 256);
    const Part part = MakePart(11, type, 10, cols, false);
    for (const uint32_t tokens : {3u, 8u, 12u}) {
      const Input clean = MakeInput(12, tokens, 0, cols);
      const auto expected = Multiply(rig, {&part}, clean)[0];
      for (const float bad : {std::numeric_limits<float>::quiet_NaN(), kInf, -kInf}) {
        Input poisoned = clean;
        poisoned.x[cols + 40] = bad;  // of token 1
        const auto y = Multiply(rig, {&part}, poisoned)[0];
        for (size_t i = 0; i < y.size(); ++i) {
          if (i / 10 == 1) {
            EXPECT_FALSE(std::isfinite(y[i])) << tensor::Name(type);
          } else {
            EXPECT_EQ(y[i], expected[i]) << tensor::Name(type) << " token " << i / 10;
          }
        }
      }
    }
  }
}

// F16 ends at 65504; activations need not.
TEST_P(BackendMatMulTest, ActivationsBeyondF16) {
  Rig rig(GetParam());
  const uint32_t cols = 261, tokens = 12;
  const Part f16 = MakePart(21, Type::kF16, 10, cols, true),
             bf16 = MakePart(24, Type::kBF16, 5, cols, false);
  for (const float scale : {1.0f, 700.0f, 1e4f, 3e6f, 1e20f, 1e30f}) {
    Input input = MakeInput(23, tokens, 0, cols);
    for (uint32_t c = 0; c < cols; ++c) {
      input.x[size_t{3} * cols + c] *= scale;  // of tokens 3 and 11
      input.x[size_t{11} * cols + c] *= scale;
    }
    const auto y = Multiply(rig, {&f16}, input)[0];
    ExpectNear(f16, input, y);
    // Beside weights that need the activations in BF16.
    const auto both = Multiply(rig, {&bf16, &f16}, input);
    ExpectNear(bf16, input, both[0]);
    ExpectSameBits(both[1], y);
  }
  // One value among small ones, first and last in its row.
  for (const uint32_t at : {0u, cols - 1}) {
    Input input = MakeInput(25, tokens, 0, cols);
    input.x[size_t{5} * cols + at] = -65520.0f;  // rounds to infinity
    ExpectNear(f16, input, Multiply(rig, {&f16}, input)[0]);
  }
}

TEST_P(BackendMatMulTest, ZeroAndTinyActivations) {
  for (const Type type : cpu::Types()) {
    Rig rig(GetParam());
    const uint32_t cols = Cols(type, 256);
    const Part part = MakePart(13, type, 6, cols, false);
    for (const float value : {0.0f, -0.0f, 1e-42f, 1e-36f, 1e-29f}) {
      const Input input = {1, 0, cols, std::vector<float>(cols, value)};
      const std::vector<float> y = Multiply(rig, {&part}, input)[0];
      for (const float out : y) {
        EXPECT_LE(std::fabs(out), value == 0.0f ? 0.0f : 1e-20f) << tensor::Name(type);
      }
    }
  }
}

// Rows so long that 128 of them are all that cuda dequantises at a time.
TEST_P(BackendMatMulTest, MoreRowsThanATileHas) {
  const uint32_t cols = (1 << 17) + 256;
  const Part part = MakePart(14, Type::kQ8_0, 130, cols, true);
  Rig rig(GetParam());
  const Input input = MakeInput(15, 9, 0, cols);
  ExpectNear(part, input, Multiply(rig, {&part}, input)[0]);
}

// As decode steps run: recorded once, run again on other values of x.
TEST_P(BackendMatMulTest, CapturedProductsReplay) {
  Rig rig(GetParam());
  Backend& backend = rig.backend();
  if (backend.graphs() == nullptr) GTEST_SKIP() << "no graphs here";
  for (const Type type : {Type::kF32, Type::kF16, Type::kBF16, Type::kQ4_K}) {
    const uint32_t cols = 256, rows = 16;
    const Part part = MakePart(17, type, rows, cols, true);
    for (const uint32_t tokens : {4u, 12u}) {
      float* const x = rig.Poisoned(size_t{tokens} * cols);
      float* const y = rig.Poisoned(size_t{tokens} * rows);
      MatMulParams params = {x, tokens, cols, 1, {}};
      params.projections[0] = {*backend.PlaceWeight(part.matrix.weight()), rig.Put(part.bias), y,
                               rows};
      backend.BeginEncode(EncodeMode::kPlan);
      backend.Encode(params);
      ASSERT_TRUE(backend.FinishPlan().ok());
      backend.BeginEncode(EncodeMode::kCapture);
      backend.Encode(params);
      const auto graph = backend.graphs()->Finish();
      ASSERT_TRUE(graph.ok()) << graph.status();
      for (const uint32_t seed : {18u, 19u}) {
        const Input input = MakeInput(seed, tokens, 0, cols);
        rig.Execute([&](Backend& b) {
          b.Upload(x, input.x.data(), input.x.size() * sizeof(float));
          b.graphs()->Replay(**graph);
        });
        ExpectNear(part, input, rig.Get(y, size_t{tokens} * rows));
      }
    }
  }
}

TEST_P(BackendMatMulTest, NoTokensNoWork) {
  Rig rig(GetParam());
  const Part part = MakePart(16, Type::kQ8_0, 4, 64, true);
  EXPECT_TRUE(Multiply(rig, {&part}, MakeInput(1, 0, 0, 64))[0].empty());
}

TANDEM_INSTANTIATE_BACKENDS(BackendMatMulTest);

}  // namespace
}  // namespace tandem::kernels
