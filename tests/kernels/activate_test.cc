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
        rig.Run([&](Backend& b) { b.Activate(params); });
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
    b.Activate({Activation::kSilu, out, up_device, 1, static_cast<uint32_t>(gate.size()), out});
  });
  ExpectClose(rig.Get(out, gate.size()), NaiveSwiGlu(gate, up), 1e-6f);
}

TEST_P(ActivateTest, NanStaysNan) {
  Rig rig(GetParam());
  float* const gate = rig.Poisoned(20);
  float* const up = rig.Put(std::vector<float>(20, 1.0f));
  float* const out = rig.Put(std::vector<float>(20, 1.0f));
  rig.Run([&](Backend& b) { b.Activate({Activation::kSilu, gate, up, 1, 20, out}); });
  for (const float value : rig.Get(out, 20)) EXPECT_TRUE(std::isnan(value));
}

}  // namespace
}  // namespace tandem::kernels
