#include <algorithm>
#include <bit>
#include <cmath>

#include "tests/kernels/backends.h"

namespace tandem::kernels {
namespace {

class ActivateTest : public testing::TestWithParam<BackendCase> {};
TANDEM_INSTANTIATE_BACKENDS(ActivateTest);

std::vector<float> NaiveSwiGlu(const std::vector<float>& gate, const std::vector<float>& up) {
  std::vector<float> out(gate.size());
  for (size_t i = 0; i < gate.size(); ++i) {
    const double g = gate[i];
    out[i] = static_cast<float>(g / (1 + std::exp(-g)) * up[i]);
  }
  return out;
}

TEST_P(ActivateTest, MatchesTheFormulaForAllShapes) {
  Random random(1);
  for (const uint32_t cols : {1u, 5u, 8u, 17u, 4864u, 5001u}) {
    for (const uint32_t rows : {1u, 3u}) {
      for (const size_t misaligned_by : {0u, 1u}) {
        SCOPED_TRACE(testing::Message() << rows << " x " << cols);
        Rig rig(GetParam());
        const auto gate = random.Floats(rows * cols, -20, 20), up = random.Floats(rows * cols);
        float* const out = rig.Poisoned(rows * cols, misaligned_by);
        const ActivateParams params{Activation::kSilu,
                                    rig.Put(gate, misaligned_by),
                                    rig.Put(up, misaligned_by),
                                    rows,
                                    cols,
                                    out};
        rig.Run([&](Backend& b) { b.Encode(params); });
        const auto actual = rig.Get(out, rows * cols), expected = NaiveSwiGlu(gate, up);
        for (size_t i = 0; i < actual.size(); ++i) {
          ASSERT_LE(std::abs(actual[i] - expected[i]), 2e-6f * std::abs(expected[i]) + 1e-30f)
              << "gate " << gate[i] << " up " << up[i];
        }
      }
    }
  }
}

TEST_P(ActivateTest, ExtremeGatesStayFinite) {
  Rig rig(GetParam());
  const std::vector<float> gate = {-1e30f, -1000, -100, -89, -88, 0, 88, 89, 1000, 1e30f};
  const std::vector<float> up(gate.size(), 2.0f);
  float* const out = rig.Put(gate);
  rig.Run([&, up_device = rig.Put(up)](Backend& b) {
    b.Encode(ActivateParams{Activation::kSilu, out, up_device, 1,
                            static_cast<uint32_t>(gate.size()), out});
  });
  ExpectClose(rig.Get(out, gate.size()), NaiveSwiGlu(gate, up), 1e-6f);
}

TEST_P(ActivateTest, NanStaysNan) {
  Rig rig(GetParam());
  float* const gate = rig.Poisoned(20);
  float* const up = rig.Put(std::vector<float>(20, 1.0f));
  float* const out = rig.Put(std::vector<float>(20, 1.0f));
  rig.Run([&](Backend& b) { b.Encode(ActivateParams{Activation::kSilu, gate, up, 1, 20, out}); });
  for (const float value : rig.Get(out, 20)) EXPECT_TRUE(std::isnan(value));
}

double NaiveSigmoid(double x) { return 1 / (1 + std::exp(-x)); }

// x (1 + tanh z) / 2 with z = sqrt(2 / pi) (x + 0.044715 x^3); by sigmoid, which cancels nothing.
double NaiveGelu(double x) {
  return x * NaiveSigmoid(2 * std::sqrt(2 / M_PI) * (x + 0.044715 * x * x * x));
}

double NaiveClamped(double gate, double up) {
  const double g = std::min(gate, 7.0), u = std::clamp(up, -7.0, 7.0);
  return g * NaiveSigmoid(1.702 * g) * (u + 1);
}

std::vector<float> RunActivate(Rig& rig, Activation function, const std::vector<float>& gate,
                               const std::vector<float>& up) {
  float* const out = rig.Poisoned(gate.size());
  const auto cols = static_cast<uint32_t>(gate.size());
  rig.Run([&, gate_device = rig.Put(gate, 1),
           up_device = up.empty() ? nullptr : rig.Put(up)](Backend& b) {
    b.Encode(ActivateParams{function, gate_device, up_device, 1, cols, out});
  });
  return rig.Get(out, gate.size());
}

void ExpectRelativelyClose(const std::vector<float>& actual, const std::vector<double>& expected) {
  for (size_t i = 0; i < actual.size(); ++i) {
    ASSERT_LE(std::abs(actual[i] - expected[i]), 3e-6 * std::abs(expected[i]) + 1e-7)
        << "at " << i << ": " << actual[i] << ", expected " << expected[i];
  }
}

TEST_P(ActivateTest, GeluMatchesTheFormulaWithAndWithoutUp) {
  Random random(3);
  for (const size_t count : {1u, 17u, 5001u}) {
    Rig rig(GetParam());
    const auto gate = random.Floats(count, -12, 12), up = random.Floats(count, -2, 2);
    std::vector<double> plain, gated;
    for (size_t i = 0; i < count; ++i) {
      plain.push_back(NaiveGelu(gate[i]));
      gated.push_back(plain.back() * up[i]);
    }
    ExpectRelativelyClose(RunActivate(rig, Activation::kGeluTanh, gate, {}), plain);
    ExpectRelativelyClose(RunActivate(rig, Activation::kGeluTanh, gate, up), gated);
  }
}

TEST_P(ActivateTest, RowsOfGateHaveScales) {
  Random random(5);
  for (const uint32_t cols : {1u, 7u, 24u, 5001u}) {
    Rig rig(GetParam());
    constexpr uint32_t kRows = 5;
    auto gate = random.Floats(kRows * cols, -4, 4);
    const auto up = random.Floats(kRows * cols), scales = random.Floats(kRows, 0.1f, 2);
    float* const out = rig.Poisoned(kRows * cols);
    ActivateParams params{Activation::kSilu, rig.Put(gate), rig.Put(up), kRows, cols, out};
    params.gate_scale = rig.Put(scales);
    rig.Run([&](Backend& b) { b.Encode(params); });
    for (size_t i = 0; i < gate.size(); ++i) gate[i] *= scales[i / cols];
    ExpectClose(rig.Get(out, gate.size()), NaiveSwiGlu(gate, up), 2e-6f);
  }
}

TEST_P(ActivateTest, GeluOfExtremesStaysFinite) {
  Rig rig(GetParam());
  const auto out = RunActivate(rig, Activation::kGeluTanh, {-1e30f, -100, 0, 100, 1e30f}, {});
  EXPECT_EQ(out, (std::vector<float>{0, 0, 0, 100, 1e30f}));
}

TEST_P(ActivateTest, SiluWithoutUp) {
  Rig rig(GetParam());
  const std::vector<float> gate = {-3, -0.5f, 0, 1, 20};
  ExpectClose(RunActivate(rig, Activation::kSilu, gate, {}),
              NaiveSwiGlu(gate, std::vector<float>(5, 1.0f)), 1e-6f);
}

TEST_P(ActivateTest, SigmoidIsTheGateAlone) {
  Random random(5);
  for (const size_t count : {1u, 17u, 5001u}) {
    Rig rig(GetParam());
    const auto gate = random.Floats(count, -90, 90), up = random.Floats(count, -2, 2);
    std::vector<double> expected;
    for (size_t i = 0; i < count; ++i) expected.push_back(NaiveSigmoid(gate[i]) * up[i]);
    ExpectRelativelyClose(RunActivate(rig, Activation::kSigmoid, gate, up), expected);
  }
}

TEST_P(ActivateTest, ClampedSwiGluMatchesTheFormula) {
  Random random(4);
  for (const size_t count : {1u, 17u, 5001u}) {
    Rig rig(GetParam());
    const auto gate = random.Floats(count, -12, 12), up = random.Floats(count, -12, 12);
    std::vector<double> expected;
    for (size_t i = 0; i < count; ++i) expected.push_back(NaiveClamped(gate[i], up[i]));
    ExpectRelativelyClose(RunActivate(rig, Activation::kClampedSwiGlu, gate, up), expected);
  }
}

TEST_P(ActivateTest, ClampedSwiGluClampsInfinities) {
  Rig rig(GetParam());
  const float inf = INFINITY;
  const auto out = RunActivate(rig, Activation::kClampedSwiGlu, {inf, 2, 2, inf, -1e30f},
                               {0, inf, -inf, inf, 3});
  ExpectRelativelyClose(
      out, {NaiveClamped(7, 0), NaiveClamped(2, 7), NaiveClamped(2, -7), NaiveClamped(7, 7), 0});
}

// Of any payload, in either argument, in whole vectors and in the rest of a row.
TEST_P(ActivateTest, EveryNanStaysNan) {
  Rig rig(GetParam());
  const std::vector<float> ones(21, 1.0f);
  for (const Activation function : {Activation::kSilu, Activation::kGeluTanh, Activation::kSigmoid,
                                    Activation::kClampedSwiGlu}) {
    for (const uint32_t bits : {0x7fc00000u, 0x7fc12345u, 0x7fffffffu, 0xffffffffu}) {
      const std::vector<float> nans(21, std::bit_cast<float>(bits));
      for (const float value : RunActivate(rig, function, nans, ones))
        EXPECT_TRUE(std::isnan(value))
            << static_cast<int>(function) << ", gate " << std::hex << bits;
      for (const float value : RunActivate(rig, function, ones, nans))
        EXPECT_TRUE(std::isnan(value)) << static_cast<int>(function) << ", up " << std::hex << bits;
    }
  }
}

}  // namespace
}  // namespace tandem::kernels
