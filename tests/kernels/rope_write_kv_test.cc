#include <cmath>

#include "common/tensor/f16.h"
#include "tests/kernels/backends.h"

namespace tandem::kernels {
namespace {

class RopeWriteKvTest : public testing::TestWithParam<BackendCase> {};
TANDEM_INSTANTIATE_BACKENDS(RopeWriteKvTest);

struct Shape {
  uint32_t heads, kv_heads, head_dim, value_dim, rotary_dims, block_size;
  bool halves;
  tensor::Type type;
};

constexpr uint32_t kTokens = 9, kBlocks = 12;

// x (tokens, heads, dim) rotated, in double.
std::vector<float> NaiveRotate(std::vector<float> x, uint32_t heads, const Shape& s,
                               const std::vector<int32_t>& positions,
                               const std::vector<float>& inv_freq, float magnitude) {
  for (size_t row = 0; row < size_t{kTokens} * heads; ++row) {
    float* const head = &x[row * s.head_dim];
    for (uint32_t i = 0; i < s.rotary_dims / 2; ++i) {
      const float angle = static_cast<float>(positions[row / heads]) * inv_freq[i];
      const double c = std::cos(static_cast<double>(angle)) * magnitude;
      const double d = std::sin(static_cast<double>(angle)) * magnitude;
      float& a = head[s.halves ? i : 2 * i];
      float& b = head[s.halves ? i + s.rotary_dims / 2 : 2 * i + 1];
      const double rotated = a * c - b * d;
      b = static_cast<float>(b * c + a * d);
      a = static_cast<float>(rotated);
    }
  }
  return x;
}

// Pages as bits: poison where nothing may be written.
constexpr uint32_t kPoison = 0x7fc12345;

template <typename Bits>
void ExpectPages(const std::vector<Bits>& pages, const std::vector<float>& rows,
                 const std::vector<int32_t>& slots, const Shape& s, uint32_t dim) {
  std::vector<Bits> expected(pages.size(), static_cast<Bits>(kPoison));
  for (size_t t = 0; t < kTokens; ++t) {
    if (slots[t] < 0) continue;
    const auto slot = static_cast<uint32_t>(slots[t]);
    for (uint32_t h = 0; h < s.kv_heads; ++h) {
      for (uint32_t d = 0; d < dim; ++d) {
        const size_t at =
            (size_t{slot / s.block_size * s.kv_heads + h} * s.block_size + slot % s.block_size) *
                dim +
            d;
        const float value = rows[(t * s.kv_heads + h) * dim + d];
        if constexpr (sizeof(Bits) == 2) {
          expected[at] = tensor::FloatToHalf(value);
        } else {
          std::memcpy(&expected[at], &value, 4);
        }
      }
    }
  }
  for (size_t i = 0; i < pages.size(); ++i) ASSERT_EQ(pages[i], expected[i]) << "at " << i;
}

template <typename Bits>
void Check(const BackendCase& backend, const Shape& s, uint32_t seed) {
  Rig rig(backend);
  Random random(seed);
  const auto q = random.Floats(kTokens * s.heads * s.head_dim),
             k = random.Floats(kTokens * s.kv_heads * s.head_dim);
  auto v = random.Floats(kTokens * s.kv_heads * s.value_dim, -2, 2);
  v[0] = 1e-6f;  // a subnormal half
  v[1] = 1e6f;   // too large for a half
  std::vector<float> inv_freq(s.rotary_dims / 2);
  for (size_t i = 0; i < inv_freq.size(); ++i) {
    inv_freq[i] =
        std::pow(10000.0f, -2.0f * static_cast<float>(i) / static_cast<float>(s.rotary_dims));
  }
  std::vector<int32_t> positions(kTokens), slots(kTokens);
  for (size_t t = 0; t < kTokens; ++t) {
    positions[t] = random.Int(0, 3000);
    slots[t] =
        static_cast<int32_t>(t * kBlocks * s.block_size / kTokens);  // apart, over all blocks
  }
  slots[2] = -1;
  const float magnitude = 1.25f;
  const size_t page_rows = size_t{kBlocks} * s.kv_heads * s.block_size;
  Bits* const k_pages =
      rig.Put(std::vector<Bits>(page_rows * s.head_dim, static_cast<Bits>(kPoison)));
  Bits* const v_pages =
      rig.Put(std::vector<Bits>(page_rows * s.value_dim, static_cast<Bits>(kPoison)));
  RopeWriteKvParams p{};
  p.q = rig.Put(q, 1);
  p.k = rig.Put(k, 1);
  p.v = rig.Put(v, 1);
  p.tokens = kTokens;
  p.heads = s.heads;
  p.positions = rig.Put(positions);
  p.slots = rig.Put(slots);
  p.inv_freq = rig.Put(inv_freq);
  p.rotary_dims = s.rotary_dims;
  p.halves = s.halves;
  p.magnitude = magnitude;
  p.pages = {s.type, k_pages, v_pages, kBlocks, s.block_size, s.kv_heads, s.head_dim, s.value_dim};
  rig.Run([&](Backend& b) { b.RopeWriteKv(p); });
  ExpectClose(rig.Get(p.q, q.size()), NaiveRotate(q, s.heads, s, positions, inv_freq, magnitude),
              1e-6f);
  const auto rotated_k = rig.Get(p.k, k.size());
  ExpectClose(rotated_k, NaiveRotate(k, s.kv_heads, s, positions, inv_freq, magnitude), 1e-6f);
  ExpectPages(rig.Get(k_pages, page_rows * s.head_dim), rotated_k, slots, s, s.head_dim);
  ExpectPages(rig.Get(v_pages, page_rows * s.value_dim), v, slots, s, s.value_dim);
}

TEST_P(RopeWriteKvTest, RotatesAndWritesForAllShapes) {
  uint32_t seed = 0;
  for (const bool halves : {true, false}) {
    for (const Shape& s :
         {Shape{14, 2, 64, 64, 64, 16, halves, {}}, Shape{3, 1, 40, 24, 20, 8, halves, {}},
          Shape{2, 2, 10, 6, 6, 1, halves, {}}, Shape{1, 1, 128, 128, 64, 256, halves, {}}}) {
      SCOPED_TRACE(testing::Message()
                   << s.heads << " heads of " << s.head_dim << ", halves " << halves);
      Shape f32 = s, f16 = s;
      f32.type = tensor::Type::kF32;
      f16.type = tensor::Type::kF16;
      Check<uint32_t>(GetParam(), f32, ++seed);
      Check<uint16_t>(GetParam(), f16, ++seed);
    }
  }
}

}  // namespace
}  // namespace tandem::kernels
