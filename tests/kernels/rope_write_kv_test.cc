#include <cmath>

#include "common/tensor/blocks_of_32.h"
#include "common/tensor/dequantize.h"
#include "common/tensor/f16.h"
#include "tests/kernels/backends.h"

namespace tandem::kernels {
namespace {

class RopeWriteKvTest : public testing::TestWithParam<BackendCase> {};
TANDEM_INSTANTIATE_BACKENDS(RopeWriteKvTest);

struct Shape {
  uint32_t heads, kv_heads, head_dim, value_dim, rotary_dims, block_size;
  bool halves;
  tensor::Type type = tensor::Type::kF32;
  uint32_t rotary_begin = 0;
  bool latent = false;
  float temperature_scale = 0;
  uint32_t temperature_offset = 0;
  float norm_epsilon = 0;
  bool k_columns = false;
};

constexpr uint32_t kTemperatureLength = 48;

constexpr uint32_t kTokens = 9, kBlocks = 12;

// x (tokens, heads, dim) rotated, in double.
std::vector<float> NaiveRotate(std::vector<float> x, uint32_t heads, const Shape& s,
                               const std::vector<int32_t>& positions,
                               const std::vector<float>& inv_freq, float magnitude) {
  for (size_t row = 0; row < size_t{kTokens} * heads; ++row) {
    float* const head = &x[row * s.head_dim + s.rotary_begin];
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

// Every head (head_dim) divided by its root mean square.
void NaiveNorm(const Shape& s, std::vector<float>& x) {
  for (size_t head = 0; s.norm_epsilon > 0 && head < x.size(); head += s.head_dim) {
    double squares = 0;
    for (size_t i = head; i < head + s.head_dim; ++i) squares += double{x[i]} * x[i];
    const double rms = std::sqrt(squares / s.head_dim + s.norm_epsilon);
    for (size_t i = head; i < head + s.head_dim; ++i) x[i] = static_cast<float>(x[i] / rms);
  }
}

// q (tokens, heads, dim) times its temperature.
void NaiveTemperature(const Shape& s, const std::vector<int32_t>& positions,
                      std::vector<float>& q) {
  for (size_t i = 0; i < q.size(); ++i) {
    const size_t token = i / (size_t{s.heads} * s.head_dim);
    const double steps = std::floor((positions[token] + static_cast<double>(s.temperature_offset)) /
                                    kTemperatureLength);
    q[i] = static_cast<float>(q[i] * (1 + s.temperature_scale * std::log(1 + steps)));
  }
}

std::vector<std::byte> Q8_0Row(const float* values, uint32_t dim) {
  std::vector<tensor::BlockQ8_0> blocks(dim / 32);
  for (uint32_t i = 0; i < dim; ++i) {
    const float* const block = values + i / 32 * 32;
    float largest = 0;
    for (uint32_t j = 0; j < 32; ++j) largest = std::max(largest, std::abs(block[j]));
    blocks[i / 32].d = tensor::FloatToHalf(largest / 127);
    const float d = tensor::HalfToFloat(blocks[i / 32].d);
    const double steps = d == 0 ? 0 : std::nearbyint(double{values[i]} / d);
    blocks[i / 32].qs[i % 32] = static_cast<int8_t>(std::min(127.0, std::max(-127.0, steps)));
  }
  std::vector<std::byte> bytes(blocks.size() * sizeof(blocks[0]));
  std::memcpy(bytes.data(), blocks.data(), bytes.size());
  return bytes;
}

// A row as it must lie in a page.
std::vector<std::byte> PageRow(tensor::Type type, const float* values, uint32_t dim) {
  if (type == tensor::Type::kQ8_0) return Q8_0Row(values, dim);
  std::vector<std::byte> bytes(tensor::RowBytes(type, dim));
  for (uint32_t d = 0; d < dim; ++d) {
    if (type == tensor::Type::kF32) {
      std::memcpy(&bytes[4 * d], &values[d], 4);
    } else {
      const uint16_t bits = type == tensor::Type::kF16 ? tensor::FloatToHalf(values[d])
                                                       : tensor::FloatToBf16(values[d]);
      std::memcpy(&bytes[2 * d], &bits, 2);
    }
  }
  return bytes;
}

// The fill value of memory that must not be written.
constexpr std::byte kPoison{0xa5};

// Where byte `i` of a K row of (slot, head) lies in columns: words of a block, then scales of Q8_0.
size_t ColumnByte(const Shape& s, uint32_t slot, uint32_t head, size_t i) {
  const size_t size = s.block_size, offset = slot % size;
  const size_t row_bytes = tensor::RowBytes(s.type, s.head_dim);
  const size_t block = (slot / size * s.kv_heads + head) * size * row_bytes;
  if (s.type == tensor::Type::kF16) return block + (i / 2 * size + offset) * 2 + i % 2;
  if (s.type != tensor::Type::kQ8_0) return block + (i / 4 * size + offset) * 4 + i % 4;
  const size_t in_block = i % 34, scales = block + size * s.head_dim;
  if (in_block < 2) return scales + (i / 34 * size + offset) * 2 + in_block;
  const size_t value = i / 34 * 32 + in_block - 2;
  return block + (value / 4 * size + offset) * 4 + value % 4;
}

void ExpectPages(const std::vector<std::byte>& pages, const std::vector<float>& rows,
                 const std::vector<int32_t>& slots, const Shape& s, uint32_t dim, bool columns) {
  std::vector<std::byte> expected(pages.size(), kPoison);
  for (size_t t = 0; t < kTokens; ++t) {
    if (slots[t] < 0) continue;
    const auto slot = static_cast<uint32_t>(slots[t]);
    for (uint32_t h = 0; h < s.kv_heads; ++h) {
      const auto row = PageRow(s.type, &rows[(t * s.kv_heads + h) * dim], dim);
      const size_t at =
          size_t{slot / s.block_size * s.kv_heads + h} * s.block_size + slot % s.block_size;
      for (size_t i = 0; i < row.size(); ++i)
        expected[columns ? ColumnByte(s, slot, h, i) : at * row.size() + i] = row[i];
    }
  }
  for (size_t i = 0; i < pages.size(); ++i)
    ASSERT_EQ(static_cast<int>(pages[i]), static_cast<int>(expected[i])) << "at byte " << i;
}

void Check(const BackendCase& backend, const Shape& s, uint32_t seed) {
  SCOPED_TRACE(testing::Message() << s.heads << " heads of " << s.head_dim << ", halves "
                                  << s.halves << ", " << tensor::Name(s.type)
                                  << (s.latent ? ", latent" : "")
                                  << (s.k_columns ? ", K in columns" : ""));
  Rig rig(backend);
  Random random(seed);
  const auto q = random.Floats(kTokens * s.heads * s.head_dim),
             k = random.Floats(kTokens * s.kv_heads * s.head_dim);
  auto v = random.Floats(kTokens * s.kv_heads * s.value_dim, -2, 2);
  v[0] = 1e-6f;  // a subnormal half
  v[1] = 1e6f;   // too large for a half
  std::fill_n(v.end() - s.value_dim, s.value_dim, s.type == tensor::Type::kQ8_0 ? 0.0f : -1.5f);
  std::vector<float> inv_freq(s.rotary_dims / 2);
  for (size_t i = 0; i < inv_freq.size(); ++i) {
    inv_freq[i] =
        std::pow(10000.0f, -2.0f * static_cast<float>(i) / static_cast<float>(s.rotary_dims));
  }
  std::vector<int32_t> positions(kTokens), slots(kTokens);
  for (size_t t = 0; t < kTokens; ++t) {
    positions[t] = random.Int(0, 3000);
    // The last position of a step of the temperature, and the first of the next.
    if (t < 2) positions[t] = static_cast<int32_t>(2 * kTemperatureLength - 1 + t);
    if (t == 3) positions[t] = (1 << 20) - 1;  // angles that have to be reduced with care
    slots[t] =
        static_cast<int32_t>(t * kBlocks * s.block_size / kTokens);  // apart, over all blocks
  }
  slots[2] = -1;
  const float magnitude = 1.25f;
  const size_t page_rows = size_t{kBlocks} * s.kv_heads * s.block_size;
  const size_t k_bytes = page_rows * tensor::RowBytes(s.type, s.head_dim);
  const size_t v_bytes = page_rows * tensor::RowBytes(s.type, s.value_dim);
  std::byte* const k_pages = rig.Put(std::vector<std::byte>(k_bytes, kPoison));
  std::byte* const v_pages = s.latent ? nullptr : rig.Put(std::vector<std::byte>(v_bytes, kPoison));
  RopeWriteKvParams p{};
  p.q = rig.Put(q, 1);
  p.k = rig.Put(k, 1);
  p.v = s.latent ? nullptr : rig.Put(v, 1);
  p.tokens = kTokens;
  p.heads = s.heads;
  p.positions = rig.Put(positions);
  p.slots = rig.Put(slots);
  p.inv_freq = s.rotary_dims == 0 ? nullptr : rig.Put(inv_freq);
  p.rotary_begin = s.rotary_begin;
  p.rotary_dims = s.rotary_dims;
  p.halves = s.halves;
  p.magnitude = magnitude;
  p.pages = {s.type,     k_pages,    v_pages,     kBlocks,  s.block_size,
             s.kv_heads, s.head_dim, s.value_dim, s.latent, s.k_columns};
  p.norm_epsilon = s.norm_epsilon;
  p.temperature_scale = s.temperature_scale;
  p.temperature_length = kTemperatureLength;
  p.temperature_offset = s.temperature_offset;
  rig.Run([&](Backend& b) { b.Encode(p); });
  const auto rotated_q = rig.Get(p.q, q.size()), rotated_k = rig.Get(p.k, k.size());
  auto expected_q = NaiveRotate(q, s.heads, s, positions, inv_freq, magnitude);
  auto expected_k = NaiveRotate(k, s.kv_heads, s, positions, inv_freq, magnitude);
  NaiveNorm(s, expected_q);
  NaiveNorm(s, expected_k);
  NaiveTemperature(s, positions, expected_q);
  ExpectClose(rotated_q, expected_q, 1e-6f);
  ExpectClose(rotated_k, expected_k, 1e-6f);
  if (s.rotary_dims == 0 && s.norm_epsilon == 0) {
    if (s.temperature_scale == 0) ExpectSameBits(rotated_q, q);
    ExpectSameBits(rotated_k, k);
  }
  ExpectPages(rig.Get(k_pages, k_bytes), rotated_k, slots, s, s.head_dim, s.k_columns);
  if (!s.latent) ExpectPages(rig.Get(v_pages, v_bytes), v, slots, s, s.value_dim, false);
}

TEST_P(RopeWriteKvTest, RotatesAndWritesForAllShapes) {
  uint32_t seed = 0;
  for (const bool halves : {true, false}) {
    for (Shape s : {Shape{14, 2, 64, 64, 64, 16, halves}, Shape{3, 1, 40, 24, 20, 8, halves},
                    Shape{2, 2, 10, 6, 6, 1, halves}, Shape{1, 1, 128, 128, 64, 256, halves}}) {
      for (const tensor::Type type :
           {tensor::Type::kF32, tensor::Type::kF16, tensor::Type::kBF16}) {
        s.type = type;
        Check(GetParam(), s, ++seed);
      }
    }
    for (const Shape& s :
         {Shape{4, 2, 64, 32, 64, 16, halves}, Shape{2, 1, 96, 128, 40, 8, halves}}) {
      Shape q8_0 = s;
      q8_0.type = tensor::Type::kQ8_0;
      Check(GetParam(), q8_0, ++seed);
    }
  }
}

TEST_P(RopeWriteKvTest, WritesColumnsOfK) {
  if (GetParam().cuda()) GTEST_SKIP() << "K lies in rows";
  uint32_t seed = 0;
  for (const tensor::Type type :
       {tensor::Type::kF32, tensor::Type::kF16, tensor::Type::kBF16, tensor::Type::kQ8_0}) {
    for (Shape s : {Shape{4, 2, 64, 32, 64, 16, true}, Shape{2, 1, 96, 128, 40, 32, false},
                    Shape{3, 3, 32, 32, 0, 64, true}}) {
      s.type = type;
      s.k_columns = true;
      Check(GetParam(), s, ++seed);
    }
  }
}

TEST_P(RopeWriteKvTest, RotatesARunOfDimsOrNone) {
  for (const bool halves : {true, false}) {
    Shape s{3, 1, 48, 16, 20, 8, halves};
    s.rotary_begin = 28;  // the last 20
    Check(GetParam(), s, 1);
    s.rotary_begin = 7;  // in the middle
    Check(GetParam(), s, 2);
    s.rotary_begin = s.rotary_dims = 0;
    Check(GetParam(), s, 3);
  }
}

// Queries grow by steps of positions; K and V are those without.
TEST_P(RopeWriteKvTest, QueriesHaveATemperature) {
  for (const uint32_t rotary_dims : {20u, 0u}) {
    for (const uint32_t offset : {0u, 1u}) {
      Shape s{6, 2, 45, 16, rotary_dims, 8, true};
      s.temperature_scale = 0.3f;
      s.temperature_offset = offset;
      Check(GetParam(), s, 1 + offset);
    }
  }
}

TEST_P(RopeWriteKvTest, HeadsAreNormedAfterTheRotation) {
  for (const uint32_t head_dim : {7u, 45u, 64u}) {
    for (const uint32_t rotary_dims : {6u, 0u}) {
      Shape s{6, 2, head_dim, 16, rotary_dims, 8, false};
      s.norm_epsilon = 0.01f;
      Check(GetParam(), s, head_dim);
      s.temperature_scale = 0.1f;
      Check(GetParam(), s, head_dim);
    }
  }
}

TEST_P(RopeWriteKvTest, LatentPagesHaveNoV) {
  for (const tensor::Type type :
       {tensor::Type::kF32, tensor::Type::kF16, tensor::Type::kBF16, tensor::Type::kQ8_0}) {
    Shape s{16, 1, 96, 64, 32, 8, false, type, 64, true};
    Check(GetParam(), s, 1);
  }
}

// A layer that reads another's cache: neither k and v nor the pages are touched.
TEST_P(RopeWriteKvTest, WithoutKvHeadsOnlyQueriesRotate) {
  Rig rig(GetParam());
  Random random(5);
  const Shape s{6, 0, 64, 64, 64, 8, true};
  const auto q = random.Floats(kTokens * s.heads * s.head_dim);
  const auto inv_freq = random.Floats(s.rotary_dims / 2, 0.01f, 1);
  std::vector<int32_t> positions(kTokens);
  for (int32_t& position : positions) position = random.Int(0, 3000);
  RopeWriteKvParams p{};
  p.q = rig.Put(q);
  p.tokens = kTokens;
  p.heads = s.heads;
  p.positions = p.slots = rig.Put(positions);
  p.inv_freq = rig.Put(inv_freq);
  p.rotary_dims = s.rotary_dims;
  p.halves = s.halves;
  p.magnitude = 1;
  p.pages = {s.type, nullptr, nullptr, kBlocks, s.block_size, 0, s.head_dim, s.value_dim, false};
  rig.Run([&](Backend& b) { b.Encode(p); });
  ExpectClose(rig.Get(p.q, q.size()), NaiveRotate(q, s.heads, s, positions, inv_freq, 1), 1e-6f);
}

// What a block of Q8_0 cannot hold reads back as NaN, never as a number; its neighbour is not
// touched.
TEST_P(RopeWriteKvTest, Q8_0BlocksThatAreNotFiniteReadBackAsNan) {
  for (const float bad : {INFINITY, -INFINITY, std::nanf(""), 1e9f}) {
    Rig rig(GetParam());
    std::vector<float> k(64, 0.5f), read(64);
    k[37] = bad;
    RopeWriteKvParams p{};
    p.q = rig.Put(k);
    p.k = rig.Put(k);
    p.tokens = p.heads = 1;
    p.positions = p.slots = rig.Put(std::vector<int32_t>{0});
    const size_t bytes = tensor::RowBytes(tensor::Type::kQ8_0, 64);
    std::byte* const pages = rig.Put(std::vector<std::byte>(bytes, kPoison));
    p.pages = {tensor::Type::kQ8_0, pages, nullptr, 1, 1, 1, 64, 64, true};
    rig.Run([&](Backend& b) { b.Encode(p); });
    tensor::Dequantize(tensor::Type::kQ8_0, rig.Get(pages, bytes).data(), read.data(), 64);
    for (size_t i = 0; i < 64; ++i) {
      if (i < 32) {
        EXPECT_NEAR(read[i], 0.5f, 0.5f / 2048);
      } else {
        EXPECT_TRUE(std::isnan(read[i])) << bad << " gave " << read[i];
      }
    }
  }
}

}  // namespace
}  // namespace tandem::kernels
