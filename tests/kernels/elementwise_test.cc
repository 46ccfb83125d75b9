// LayerNorm, AddRows, CopyRows and SoftCap.
#include <cmath>

#include "tests/kernels/backends.h"

namespace tandem::kernels {
namespace {

class LayerNormTest : public testing::TestWithParam<BackendCase> {};
TANDEM_INSTANTIATE_BACKENDS(LayerNormTest);

constexpr float kEpsilon = 1e-5f;

std::vector<float> NaiveLayerNorm(const std::vector<float>& x, const std::vector<float>& weight,
                                  const std::vector<float>& bias) {
  const size_t dim = weight.size();
  std::vector<float> out(x.size());
  for (size_t begin = 0; begin < x.size(); begin += dim) {
    double mean = 0, squares = 0;
    for (size_t i = 0; i < dim; ++i) mean += x[begin + i] / static_cast<double>(dim);
    for (size_t i = 0; i < dim; ++i) squares += std::pow(x[begin + i] - mean, 2);
    const double deviation = std::sqrt(squares / static_cast<double>(dim) + kEpsilon);
    for (size_t i = 0; i < dim; ++i) {
      out[begin + i] = static_cast<float>((x[begin + i] - mean) / deviation * weight[i] +
                                          (bias.empty() ? 0.0 : bias[i]));
    }
  }
  return out;
}

TEST_P(LayerNormTest, MatchesTheFormulaForAllShapes) {
  Random random(1);
  for (const uint32_t dim : {1u, 3u, 64u, 65u, 132u, 768u, 5120u}) {
    for (const uint32_t rows : {1u, 13u}) {
      for (const bool with_add : {false, true}) {
        for (const bool with_bias : {false, true}) {
          SCOPED_TRACE(testing::Message()
                       << "dim " << dim << ", add " << with_add << ", bias " << with_bias);
          Rig rig(GetParam());
          auto x = random.Floats(rows * dim, 90, 110);  // a mean that drowns the rest
          const auto weight = random.Floats(dim), add = random.Floats(rows * dim);
          const auto bias = with_bias ? random.Floats(dim) : std::vector<float>();
          float* const residual = rig.Put(x, 1);
          float* const out = rig.Poisoned(rows * dim, 1);
          rig.Run([&, add_device = with_add ? rig.Put(add) : nullptr,
                   weight_device = rig.Put(weight),
                   bias_device = with_bias ? rig.Put(bias) : nullptr](Backend& b) {
            b.Encode(LayerNormParams{residual, add_device, weight_device, bias_device, kEpsilon,
                                     rows, dim, out});
          });
          for (size_t i = 0; with_add && i < x.size(); ++i) x[i] += add[i];
          ExpectSameBits(rig.Get(residual, x.size()), x);
          ExpectClose(rig.Get(out, x.size()), NaiveLayerNorm(x, weight, bias), 2e-6f);
        }
      }
    }
  }
}

TEST_P(LayerNormTest, ARowOfEqualValuesGivesTheBias) {
  Rig rig(GetParam());
  float* const x = rig.Put(std::vector<float>(32, 12.5f));
  float* const bias = rig.Put(std::vector<float>(32, 0.25f));
  float* const out = rig.Poisoned(32);
  rig.Run([&](Backend& b) {
    b.Encode(LayerNormParams{x, nullptr, x, bias, kEpsilon, 1, 32, out});
  });
  EXPECT_EQ(rig.Get(out, 32), std::vector<float>(32, 0.25f));
}

class AddRowsTest : public testing::TestWithParam<BackendCase> {};
TANDEM_INSTANTIATE_BACKENDS(AddRowsTest);

TEST_P(AddRowsTest, AddsEveryRowTimesItsGate) {
  Random random(2);
  constexpr uint32_t kRows = 5, kDim = 67;
  for (const bool with_gate : {false, true}) {
    Rig rig(GetParam());
    const auto y = random.Floats(kRows * kDim), x = random.Floats(kRows * kDim);
    const std::vector<float> gate = {0, 1.5f, -3, 200, -200};
    float* const device = rig.Put(y, 1);
    rig.Run(
        [&, x_device = rig.Put(x), gate_device = with_gate ? rig.Put(gate) : nullptr](Backend& b) {
          b.Encode(AddRowsParams{device, x_device, gate_device, kRows, kDim});
        });
    std::vector<float> expected = y;
    for (size_t i = 0; i < expected.size(); ++i) {
      const double factor = with_gate ? 1 / (1 + std::exp(-double{gate[i / kDim]})) : 1;
      expected[i] = static_cast<float>(y[i] + factor * x[i]);
    }
    ExpectClose(rig.Get(device, y.size()), expected, 2e-7f);
  }
}

TEST_P(AddRowsTest, ScalesTheSum) {
  Random random(3);
  constexpr uint32_t kRows = 3;
  for (const uint32_t dim : {64u, 67u}) {
    Rig rig(GetParam());
    const auto y = random.Floats(kRows * dim), x = random.Floats(kRows * dim);
    float* const device = rig.Put(y);
    rig.Run([&, x_device = rig.Put(x)](Backend& b) {
      b.Encode(AddRowsParams{device, x_device, nullptr, kRows, dim, 0.375f});
    });
    std::vector<float> expected = y;
    for (size_t i = 0; i < expected.size(); ++i) expected[i] = (y[i] + x[i]) * 0.375f;
    EXPECT_EQ(rig.Get(device, y.size()), expected);
  }
}

class CopyRowsTest : public testing::TestWithParam<BackendCase> {};
TANDEM_INSTANTIATE_BACKENDS(CopyRowsTest);

// Odd shapes; shapes and addresses that go in fours; and fours whose rows begin at odd places.
struct CopyShape {
  uint32_t from, to, dim;  // strides, and values of a row
  uint32_t from_begin, to_begin;
};

TEST_P(CopyRowsTest, CopiesBetweenStridesAndTouchesNothingElse) {
  Random random(3);
  for (const CopyShape& s : {CopyShape{11, 9, 7, 2, 1}, CopyShape{16, 24, 8, 4, 12},
                             CopyShape{11, 16, 8, 0, 0}, CopyShape{16, 11, 8, 0, 0}}) {
    for (const uint32_t rows : {1u, 15u, 16u, 17u, 100u}) {
      Rig rig(GetParam());
      const auto x = random.Floats(rows * s.from);
      float* const y = rig.Put(std::vector<float>(rows * s.to, 5.0f));
      rig.Run([&, x_device = rig.Put(x)](Backend& b) {
        b.Encode(
            CopyRowsParams{x_device + s.from_begin, s.from, rows, s.dim, y + s.to_begin, s.to});
      });
      std::vector<float> expected(rows * s.to, 5.0f);
      for (uint32_t row = 0; row < rows; ++row) {
        std::copy_n(&x[row * s.from + s.from_begin], s.dim, &expected[row * s.to + s.to_begin]);
      }
      ExpectSameBits(rig.Get(y, expected.size()), expected);
    }
  }
}

class SoftCapTest : public testing::TestWithParam<BackendCase> {};
TANDEM_INSTANTIATE_BACKENDS(SoftCapTest);

TEST_P(SoftCapTest, MatchesTheFormulaInPlace) {
  Random random(4);
  for (const size_t count : {1u, 4096u, 4097u, 10000u}) {
    Rig rig(GetParam());
    const auto x = random.Floats(count, -100, 100);
    float* const device = rig.Put(x, 1);
    rig.Run([&](Backend& b) { b.Encode(SoftCapParams{device, count, 30}); });
    std::vector<float> expected(count);
    for (size_t i = 0; i < count; ++i)
      expected[i] = static_cast<float>(30 * std::tanh(double{x[i]} / 30));
    ExpectClose(rig.Get(device, count), expected, 1e-6f);
  }
}

TEST_P(SoftCapTest, ExtremesBecomeTheCap) {
  Rig rig(GetParam());
  float* const x = rig.Put(std::vector<float>{INFINITY, -INFINITY, 1e30f, -0.0f, 1e-20f});
  rig.Run([&](Backend& b) { b.Encode(SoftCapParams{x, 5, 30}); });
  EXPECT_EQ(rig.Get(x, 5), (std::vector<float>{30, -30, 30, 0, 1e-20f}));
  float* const nan = rig.Poisoned(3);
  rig.Run([&](Backend& b) { b.Encode(SoftCapParams{nan, 3, 30}); });
  for (const float value : rig.Get(nan, 3)) EXPECT_TRUE(std::isnan(value));
}

}  // namespace
}  // namespace tandem::kernels
