#include <cmath>
#include <tuple>

#include "tests/kernels/backends.h"

namespace tandem::kernels {
namespace {

class RmsNormTest : public testing::TestWithParam<BackendCase> {};
TANDEM_INSTANTIATE_BACKENDS(RmsNormTest);

struct Naive {
  std::vector<float> residual, out;
};

Naive NaiveNorm(std::vector<float> residual, const std::vector<float>& add,
                const std::vector<float>& weight, float epsilon) {
  const size_t dim = weight.size();
  std::vector<float> out(residual.size());
  for (size_t row = 0; row < residual.size() / dim; ++row) {
    double squares = 0;
    for (size_t i = row * dim; i < (row + 1) * dim; ++i) {
      if (!add.empty()) residual[i] += add[i];
      squares += static_cast<double>(residual[i]) * residual[i];
    }
    const double rms = std::sqrt(squares / static_cast<double>(dim) + epsilon);
    for (size_t i = 0; i < dim; ++i) {
      out[row * dim + i] = static_cast<float>(residual[row * dim + i] / rms * weight[i]);
    }
  }
  return {residual, out};
}

TEST_P(RmsNormTest, MatchesTheFormulaForAllShapes) {
  Random random(1);
  for (const uint32_t dim :
       {1u, 3u, 7u, 8u, 16u, 31u, 64u, 65u, 127u, 896u, 1000u, 2060u, 4160u, 8200u, 16388u}) {
    for (const uint32_t rows : {1u, 2u, 13u}) {
      for (const bool with_add : {false, true}) {
        for (const size_t misaligned_by : {0u, 1u}) {
          SCOPED_TRACE(testing::Message()
                       << "dim " << dim << ", rows " << rows << ", add " << with_add);
          Rig rig(GetParam());
          const auto residual = random.Floats(rows * dim, -3, 3), weight = random.Floats(dim);
          const auto add = with_add ? random.Floats(rows * dim) : std::vector<float>();
          const Naive expected = NaiveNorm(residual, add, weight, 1e-5f);
          float* const device = rig.Put(residual, misaligned_by);
          float* const out = rig.Poisoned(rows * dim, misaligned_by);
          const RmsNormParams params{device,
                                     with_add ? rig.Put(add, misaligned_by) : nullptr,
                                     rig.Put(weight, misaligned_by),
                                     1e-5f,
                                     rows,
                                     dim,
                                     out};
          rig.Run([&](Backend& b) { b.Encode(params); });
          ExpectClose(rig.Get(out, rows * dim), expected.out, 1e-5f);
          ExpectSameBits(rig.Get(device, rows * dim), expected.residual);
        }
      }
    }
  }
}

TEST_P(RmsNormTest, WritesInPlace) {
  Random random(2);
  Rig rig(GetParam());
  const auto x = random.Floats(5 * 64), weight = random.Floats(64);
  float* const device = rig.Put(x);
  const RmsNormParams params{device, nullptr, rig.Put(weight), 1e-6f, 5, 64, device};
  rig.Run([&](Backend& b) { b.Encode(params); });
  ExpectClose(rig.Get(device, x.size()), NaiveNorm(x, {}, weight, 1e-6f).out, 1e-5f);
}

TEST_P(RmsNormTest, MultipliesByTheGate) {
  Random random(5);
  for (const uint32_t dim : {5u, 16u, 64u, 130u, 2048u}) {
    for (const size_t misaligned_by : {0u, 1u}) {
      Rig rig(GetParam());
      constexpr uint32_t kRows = 7;
      const auto x = random.Floats(kRows * dim), gate = random.Floats(kRows * dim, -9, 9);
      const auto weight = random.Floats(dim);
      std::vector<float> expected = NaiveNorm(x, {}, weight, 1e-6f).out;
      for (size_t i = 0; i < expected.size(); ++i) {
        expected[i] *= static_cast<float>(gate[i] / (1 + std::exp(-double{gate[i]})));
      }
      float* const device = rig.Put(x, misaligned_by);
      RmsNormParams params{device, nullptr, rig.Put(weight, misaligned_by), 1e-6f, kRows,
                           dim,    device};
      params.gate = rig.Put(gate, misaligned_by);
      rig.Run([&](Backend& b) { b.Encode(params); });
      ExpectClose(rig.Get(device, x.size()), expected, 1e-5f);
    }
  }
}

TEST_P(RmsNormTest, WritesRowsApart) {
  Random random(4);
  for (const uint32_t dim : {5u, 64u, 70u}) {
    Rig rig(GetParam());
    constexpr uint32_t kRows = 100;
    const uint32_t stride = dim + 9;
    const auto x = random.Floats(kRows * dim), weight = random.Floats(dim);
    float* const device = rig.Put(x);
    float* const weights = rig.Put(weight);
    float* const dense = rig.Poisoned(kRows * dim);
    float* const apart = rig.Put(std::vector<float>(kRows * stride, 7.0f));
    rig.Run([&](Backend& b) {
      b.Encode(RmsNormParams{device, nullptr, weights, 1e-6f, kRows, dim, dense});
      b.Encode(RmsNormParams{device, nullptr, weights, 1e-6f, kRows, dim, apart, stride});
    });
    const auto rows = rig.Get(dense, kRows * dim);
    std::vector<float> expected(kRows * stride, 7.0f);  // the gaps are unchanged
    for (uint32_t row = 0; row < kRows; ++row)
      std::copy_n(&rows[row * dim], dim, &expected[row * stride]);
    ExpectSameBits(rig.Get(apart, expected.size()), expected);
  }
}

// Rows cut in two: the sums of squares of the parts, added, norm each part as the whole.
TEST_P(RmsNormTest, PartsOfARowAreNormedByTheSumOfTheWhole) {
  Random random(5);
  for (const uint32_t dim : {2u, 90u, 1024u}) {
    for (const uint32_t first : {0u, 1u, dim / 2}) {
      SCOPED_TRACE(testing::Message() << "dim " << dim << ", cut at " << first);
      Rig rig(GetParam());
      constexpr uint32_t kRows = 5;
      const auto x = random.Floats(kRows * dim, -3, 3), weight = random.Floats(dim);
      const float* const device = rig.Put(x, 1);
      float* const left = rig.Poisoned(kRows);
      float* const right = rig.Poisoned(kRows);
      rig.Run([&](Backend& b) {
        b.Encode(SumSquaresParams{device, dim, kRows, first, left});
        b.Encode(SumSquaresParams{device + first, dim, kRows, dim - first, right});
      });
      auto sums = rig.Get(left, kRows);
      const auto more = rig.Get(right, kRows);
      std::vector<float> part;  // the columns from `first` on
      for (uint32_t row = 0; row < kRows; ++row) {
        if (first == 0) {
          EXPECT_EQ(sums[row], 0.0f);
        }
        sums[row] += more[row];
        part.insert(part.end(), &x[row * dim + first], &x[row * dim] + dim);
      }
      const uint32_t part_dim = dim - first;
      float* const out = rig.Poisoned(part.size());
      RmsNormParams params{rig.Put(part), nullptr, rig.Put(weight) + first, 1e-5f, kRows,
                           part_dim,      out};
      params.sum_squares = rig.Put(sums);
      params.sum_dim = dim;
      rig.Run([&](Backend& b) { b.Encode(params); });
      const auto whole = NaiveNorm(x, {}, weight, 1e-5f).out;
      std::vector<float> expected;
      for (uint32_t row = 0; row < kRows; ++row) {
        expected.insert(expected.end(), &whole[row * dim + first], &whole[row * dim] + dim);
      }
      ExpectClose(rig.Get(out, part.size()), expected, 1e-5f);
    }
  }
}

TEST_P(RmsNormTest, ARowsBitsDoNotDependOnItsNeighbours) {
  Random random(3);
  Rig rig(GetParam());
  constexpr uint32_t kRows = 33, kDim = 197;
  const auto x = random.Floats(kRows * kDim), weight = random.Floats(kDim);
  float* const device = rig.Put(x);
  float* const weights = rig.Put(weight);
  float* const together = rig.Poisoned(kRows * kDim);
  float* const alone = rig.Poisoned(kRows * kDim);
  rig.Run([&](Backend& b) {
    b.Encode(RmsNormParams{device, nullptr, weights, 1e-6f, kRows, kDim, together});
  });
  for (uint32_t row = 0; row < kRows; ++row) {
    rig.Run([&](Backend& b) {
      b.Encode(
          RmsNormParams{device + row * kDim, nullptr, weights, 1e-6f, 1, kDim, alone + row * kDim});
    });
  }
  ExpectSameBits(rig.Get(alone, x.size()), rig.Get(together, x.size()));
}

}  // namespace
}  // namespace tandem::kernels
