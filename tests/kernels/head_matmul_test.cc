// HeadMatMul on every backend and weight type, plain and transposed, against a plain loop; a
// token has the same bits alone and in a batch. On CUDA larger batches are multiplied in BF16, so
// there the results are only close.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "tests/kernels/backends.h"
#include "tests/kernels/matmul_problem.h"

namespace tandem::kernels {
namespace {

using cpu::Matrix;
using tensor::Type;

// A weight of `heads` heads; x and y lie in rows that have more than they need.
struct Problem {
  const Matrix* matrix;
  uint32_t heads;
  uint32_t rows_per_head;
  uint32_t row_begin;
  uint32_t row_count;
  bool transposed;
  uint32_t col_begin;
  uint32_t col_count;
  uint32_t tokens;
  std::vector<float> x;  // (tokens, heads, in + 3)

  uint32_t in() const { return transposed ? row_count : col_count; }
  uint32_t out() const { return transposed ? col_count : row_count; }
  uint32_t x_head_stride() const { return in() + 3; }
  uint32_t y_head_stride() const { return out() + 2; }
  size_t XRow(uint32_t t, uint32_t h) const { return (size_t{t} * heads + h) * x_head_stride(); }
  size_t YRow(uint32_t t, uint32_t h) const { return (size_t{t} * heads + h) * y_head_stride(); }

  Problem Token(uint32_t t) const {
    Problem one = *this;
    one.tokens = 1;
    one.x.assign(x.begin() + static_cast<ptrdiff_t>(XRow(t, 0)),
                 x.begin() + static_cast<ptrdiff_t>(XRow(t + 1, 0)));
    return one;
  }
};

Problem MakeProblem(const Matrix& matrix, bool transposed, uint32_t tokens, uint32_t col_begin,
                    uint32_t col_count) {
  Problem p{&matrix,    3,         matrix.rows / 3, 5,      matrix.rows / 3 - 7,
            transposed, col_begin, col_count,       tokens, {}};
  p.x = cpu::RandomFloats(tokens, size_t{tokens} * p.heads * p.x_head_stride());
  return p;
}

constexpr float kLeft = -7.5f;  // what y held before

std::vector<float> RunOp(Rig& rig, const Problem& p) {
  Weight weight = p.matrix->weight();
  weight.use = WeightUse::kHeads;
  weight.col_begin = p.col_begin;
  weight.col_count = p.col_count;
  const size_t size = size_t{p.tokens} * p.heads * p.y_head_stride();
  float* const y = rig.Put(std::vector<float>(size, kLeft));
  const HeadMatMulParams params = {rig.Put(p.x),
                                   p.tokens,
                                   p.heads,
                                   p.heads * p.x_head_stride(),
                                   p.x_head_stride(),
                                   rig.backend().PlaceWeight(weight).value(),
                                   p.rows_per_head,
                                   p.row_begin,
                                   p.row_count,
                                   p.transposed,
                                   y,
                                   p.heads * p.y_head_stride(),
                                   p.y_head_stride()};
  rig.Run([&](Backend& b) { b.Encode(params); });
  return rig.Get(y, size);
}

// W[h, row_begin + j, col_begin + c] by (j, c).
std::vector<std::vector<float>> HeadOf(const Problem& p, uint32_t h) {
  std::vector<std::vector<float>> rows;
  std::vector<float> row(p.matrix->cols);
  for (uint32_t j = 0; j < p.row_count; ++j) {
    tensor::Dequantize(p.matrix->type, p.matrix->row(h * p.rows_per_head + p.row_begin + j),
                       row.data(), p.matrix->cols);
    rows.emplace_back(row.begin() + p.col_begin, row.begin() + p.col_begin + p.col_count);
  }
  return rows;
}

// Half a step of x's bytes, as its blocks lie in the weight; zero where it stays floats.
std::vector<double> HalfSteps(const Problem& p, const float* x, bool rounds) {
  std::vector<double> steps(p.in(), 0.0);
  if (!rounds || p.transposed) return steps;
  for (uint32_t c = 0; c < p.in(); ++c) {
    float largest = 0;
    for (uint32_t i = 0; i < p.in(); ++i) {
      if ((p.col_begin + i) / 32 == (p.col_begin + c) / 32)
        largest = std::max(largest, std::abs(x[i]));
    }
    steps[c] = largest / 127.0 * 0.5001;
  }
  return steps;
}

// What rounding both factors of a product to BF16 can cause, as a part of it.
constexpr double kBf16Error = 0x1p-7 + 0x1p-16;

// How a backend rounds what it multiplies.
struct Rounding {
  bool to_bytes = false;
  bool to_bf16 = false;
};

void ExpectPlainLoop(const Problem& p, const std::vector<float>& y, Rounding rounds,
                     const std::string& what) {
  for (uint32_t h = 0; h < p.heads; ++h) {
    const auto head = HeadOf(p, h);
    for (uint32_t t = 0; t < p.tokens; ++t) {
      const float* const x = p.x.data() + p.XRow(t, h);
      const std::vector<double> steps = HalfSteps(p, x, rounds.to_bytes);
      for (uint32_t o = 0; o < p.out(); ++o) {
        double sum = 0, magnitude = 0, rounding = 0;
        for (uint32_t i = 0; i < p.in(); ++i) {
          const double w = p.transposed ? head[i][o] : head[o][i];
          sum += w * x[i];
          magnitude += std::fabs(w * x[i]);
          rounding +=
              std::fabs(w) * steps[i] + (rounds.to_bf16 ? std::fabs(w * x[i]) * kBf16Error : 0);
        }
        ASSERT_NEAR(y[p.YRow(t, h) + o], sum, rounding + (magnitude + rounding) * 1e-4 + 1e-30)
            << what << " token " << t << " head " << h << " output " << o;
      }
      for (uint32_t o = p.out(); o < p.y_head_stride(); ++o) {
        ASSERT_EQ(y[p.YRow(t, h) + o], kLeft) << what;
      }
    }
  }
}

class HeadMatMulTest : public testing::TestWithParam<BackendCase> {
 protected:
  bool cuda() const { return GetParam().cuda(); }
  Rounding Rounds(Type type) const {
    if (cuda()) return {.to_bytes = false, .to_bf16 = type != Type::kF32};
    return {.to_bytes = GetParam().kernels != "reference" && cpu::Quantised(type)};
  }
};

TEST_P(HeadMatMulTest, EqualsAPlainLoop) {
  for (const Type type : cpu::Types()) {
    const uint32_t quantised = GetParam().slow() && cuda() ? 256 : 512;
    const uint32_t cols = cpu::Quantised(type) ? quantised : 197;
    const Matrix matrix = cpu::RandomMatrix(1, type, 3 * 41, cols);
    for (const bool transposed : {false, true}) {
      for (const uint32_t tokens : {1u, 7u, 37u}) {
        const Problem p = MakeProblem(matrix, transposed, tokens, 0, cols);
        Rig rig(GetParam());
        ExpectPlainLoop(p, RunOp(rig, p), Rounds(type),
                        std::string(tensor::Name(type)) + (transposed ? " transposed" : " plain"));
      }
    }
  }
}

TEST_P(HeadMatMulTest, ColumnsOfARank) {
  for (const Type type : {Type::kF32, Type::kBF16, Type::kQ8_0, Type::kQ4_K, Type::kIQ4_XS}) {
    const Matrix matrix = cpu::RandomMatrix(2, type, 3 * 40, 512);
    for (const auto& [begin, count] : {std::pair{0u, 100u}, {100u, 300u}, {257u, 1u}}) {
      for (const bool transposed : {false, true}) {
        const Problem p = MakeProblem(matrix, transposed, 3, begin, count);
        Rig rig(GetParam());
        ExpectPlainLoop(p, RunOp(rig, p), Rounds(type), std::string(tensor::Name(type)));
      }
    }
  }
}

TEST_P(HeadMatMulTest, ATokensBitsDependOnlyOnIt) {
  for (const Type type : {Type::kF32, Type::kQ8_0, Type::kQ5_K}) {
    const Matrix matrix = cpu::RandomMatrix(3, type, 3 * 50, 256);
    for (const bool transposed : {false, true}) {
      const std::vector<uint32_t> some =
          cuda() ? std::vector{0u, 31u, 64u, 69u} : std::vector{0u, 1u, 31u, 251u, 252u, 599u};
      const Problem p = MakeProblem(matrix, transposed, some.back() + 1, 0, 256);
      Rig rig(GetParam());
      BackendCase other = GetParam();
      other.threads = 3 - other.threads;
      Rig other_rig(other);
      const std::vector<float> batch = RunOp(rig, p);
      if (cuda()) ExpectPlainLoop(p, batch, Rounds(type), "batch");
      cpu::ExpectSameBits(RunOp(other_rig, p), batch, "threads");
      for (const uint32_t t : some) {
        const std::vector<float> alone = RunOp(rig, p.Token(t));
        const std::string what = "token " + std::to_string(t);
        if (cuda()) {
          ExpectPlainLoop(p.Token(t), alone, Rounds(type), what);
          continue;
        }
        cpu::ExpectSameBits(alone.data(), batch.data() + p.YRow(t, 0), alone.size(), what);
      }
    }
  }
}

TANDEM_INSTANTIATE_BACKENDS(HeadMatMulTest);

}  // namespace
}  // namespace tandem::kernels
