#include "common/tensor/dequantize.h"

#include <cmath>
#include <cstdint>
#include <cstring>

#include "common/base/check.h"
#include "common/tensor/blocks_of_256.h"
#include "common/tensor/blocks_of_32.h"
#include "common/tensor/blocks_of_64.h"
#include "common/tensor/blocks_of_few_bits.h"
#include "common/tensor/blocks_of_grids.h"
#include "common/tensor/f16.h"

namespace tandem::tensor {
namespace {

void Expand(const BlockQ8_0& block, float* out) {
  const float d = HalfToFloat(block.d);
  for (int i = 0; i < 32; ++i) out[i] = d * static_cast<float>(block.qs[i]);
}

// Value i in [0, 16) of 32, where byte j holds value j in its low half and j + 16 in its high half.
int Nibble(const uint8_t* qs, int i) { return i < 16 ? qs[i] & 15 : qs[i - 16] >> 4; }

void Expand(const BlockQ4_0& block, float* out) {
  const float d = HalfToFloat(block.d);
  for (int i = 0; i < 32; ++i) out[i] = d * static_cast<float>(Nibble(block.qs, i) - 8);
}

void Expand(const BlockQ4_1& block, float* out) {
  const float d = HalfToFloat(block.d);
  const float m = HalfToFloat(block.m);
  for (int i = 0; i < 32; ++i) out[i] = d * static_cast<float>(Nibble(block.qs, i)) + m;
}

// The five bits of value i, Q5_0's and Q5_1's.
template <typename Block>
int FiveBits(const Block& block, int i) {
  return Nibble(block.qs, i) | static_cast<int>(((block.HighBits() >> i) & 1) << 4);
}

void Expand(const BlockQ5_0& block, float* out) {
  const float d = HalfToFloat(block.d);
  for (int i = 0; i < 32; ++i) out[i] = d * static_cast<float>(FiveBits(block, i) - 16);
}

void Expand(const BlockQ5_1& block, float* out) {
  const float d = HalfToFloat(block.d);
  const float m = HalfToFloat(block.m);
  for (int i = 0; i < 32; ++i) out[i] = d * static_cast<float>(FiveBits(block, i)) + m;
}

// Values with `scale` and `min` per group: Q2_K, Q4_K, Q5_K.
template <typename Block, typename Scales>
void ExpandGroupsWithMins(const Block& block, const Scales& scales, float* out) {
  const float d = HalfToFloat(block.d);
  const float dmin = HalfToFloat(block.dmin);
  for (int g = 0; g < Block::kGroups; ++g) {
    const float scale = d * static_cast<float>(scales.Scale(g));
    const float min = dmin * static_cast<float>(scales.Min(g));
    const int end = (g + 1) * Block::kGroupValues;
    for (int i = g * Block::kGroupValues; i < end; ++i) {
      out[i] = scale * static_cast<float>(block.Value(i)) - min;
    }
  }
}

void Expand(const BlockQ2_K& block, float* out) { ExpandGroupsWithMins(block, block, out); }
void Expand(const BlockQ4_K& block, float* out) { ExpandGroupsWithMins(block, block.scales, out); }
void Expand(const BlockQ5_K& block, float* out) { ExpandGroupsWithMins(block, block.scales, out); }

void Expand(const BlockQ3_K& block, float* out) {
  const float d = HalfToFloat(block.d);
  for (int g = 0; g < BlockQ3_K::kGroups; ++g) {
    const float scale = d * static_cast<float>(block.Scale(g));
    for (int i = 16 * g; i < 16 * (g + 1); ++i) {
      out[i] = scale * static_cast<float>(block.Value(i) - 4);
    }
  }
}

void Expand(const BlockQ6_K& block, float* out) {
  const float d = HalfToFloat(block.d);
  for (int half = 0; half < 2; ++half) {
    const uint8_t* ql = block.ql + 64 * half;
    const uint8_t* qh = block.qh + 32 * half;
    for (int k = 0; k < 4; ++k) {
      for (int l = 0; l < 32; ++l) {
        const int i = 128 * half + 32 * k + l;
        const int low = (ql[l + 32 * (k % 2)] >> (k < 2 ? 0 : 4)) & 15;
        const int high = (qh[l] >> (2 * k)) & 3;
        const float scale = d * static_cast<float>(block.scales[i / 16]);
        out[i] = scale * static_cast<float>((low | (high << 4)) - 32);
      }
    }
  }
}

void Expand(const BlockIQ4_NL& block, float* out) {
  const float d = HalfToFloat(block.d);
  for (int i = 0; i < 32; ++i) {
    out[i] = d * static_cast<float>(kIq4Codebook.value[Nibble(block.qs, i)]);
  }
}

void Expand(const BlockIQ4_XS& block, float* out) {
  const float d = HalfToFloat(block.d);
  for (int g = 0; g < BlockIQ4_XS::kGroups; ++g) {
    const float scale = d * static_cast<float>(block.Scale(g));
    for (int i = 0; i < 32; ++i) {
      const int8_t value = kIq4Codebook.value[Nibble(block.qs + 16 * g, i)];
      out[32 * g + i] = scale * static_cast<float>(value);
    }
  }
}

void Expand(const BlockMXFP4& block, float* out) {
  const float d = std::ldexp(1.0f, block.e - 128);
  for (int i = 0; i < 32; ++i) {
    out[i] = d * static_cast<float>(kMxfp4Codebook.value[Nibble(block.qs, i)]);
  }
}

void Expand(const BlockNVFP4& block, float* out) {
  for (int i = 0; i < BlockNVFP4::kValues; ++i) {
    const int8_t value = kMxfp4Codebook.value[block.Index(i)];
    out[i] = block.Scale(i / BlockNVFP4::kGroupValues) * static_cast<float>(value);
  }
}

// IQ2 and IQ3: entries are magnitudes.
template <typename Block>
void ExpandMagnitudes(const Block& block, float* out) {
  const float d = HalfToFloat(block.d) * Block::kUnit;
  for (int run = 0; run < Block::kValues / Block::kRun; ++run, out += Block::kRun) {
    const float scale = d * static_cast<float>(block.Scale(run));
    for (int i = 0; i < Block::kRun; ++i) {
      const int value = Block::kGrid.Value(block.Index(run), static_cast<size_t>(i));
      out[i] = scale * static_cast<float>((block.Signs(run) >> i & 1) != 0 ? -value : value);
    }
  }
}

void Expand(const BlockIQ2_XXS& block, float* out) { ExpandMagnitudes(block, out); }
void Expand(const BlockIQ2_XS& block, float* out) { ExpandMagnitudes(block, out); }
void Expand(const BlockIQ2_S& block, float* out) { ExpandMagnitudes(block, out); }
void Expand(const BlockIQ3_XXS& block, float* out) { ExpandMagnitudes(block, out); }
void Expand(const BlockIQ3_S& block, float* out) { ExpandMagnitudes(block, out); }

// IQ1, with the scale of the scales.
template <typename Block>
void ExpandEighths(const Block& block, uint16_t half, float* out) {
  const float d = HalfToFloat(half) * Block::kUnit;
  for (int run = 0; run < Block::kValues / Block::kRun; ++run, out += Block::kRun) {
    const float scale = d * static_cast<float>(block.Scale(run));
    for (int i = 0; i < Block::kRun; ++i) {
      const int value = Block::kGrid.Value(block.Index(run), static_cast<size_t>(i));
      out[i] = scale * static_cast<float>(value - kIq1Offset + block.Eighth(run));
    }
  }
}

void Expand(const BlockIQ1_S& block, float* out) { ExpandEighths(block, block.d, out); }
void Expand(const BlockIQ1_M& block, float* out) { ExpandEighths(block, block.Half(), out); }

template <typename Block>
void ExpandFewBits(const Block& block, float* out) {
  const float d = HalfToFloat(block.d);
  for (int i = 0; i < Block::kValues; ++i) out[i] = d * static_cast<float>(block.Value(i));
}

void Expand(const BlockQ1_0& block, float* out) { ExpandFewBits(block, out); }
void Expand(const BlockQ2_0& block, float* out) { ExpandFewBits(block, out); }
void Expand(const BlockTQ1_0& block, float* out) { ExpandFewBits(block, out); }
void Expand(const BlockTQ2_0& block, float* out) { ExpandFewBits(block, out); }

template <typename Block>
void ExpandAll(const std::byte* data, float* out, size_t values) {
  const auto* blocks = reinterpret_cast<const Block*>(data);
  for (size_t b = 0; b < values / Block::kValues; ++b) Expand(blocks[b], out + b * Block::kValues);
}

template <float (*kConvert)(uint16_t)>
void ConvertAll(const std::byte* data, float* out, size_t values) {
  const auto* bits = reinterpret_cast<const uint16_t*>(data);
  for (size_t i = 0; i < values; ++i) out[i] = kConvert(bits[i]);
}

}  // namespace

void Dequantize(Type type, const std::byte* blocks, float* out, size_t values) {
  TANDEM_CHECK(values % Traits(type).block_values == 0)
      << Name(type) << ", " << values << " values";
  switch (type) {
    case Type::kF32:
      if (values != 0) std::memcpy(out, blocks, values * sizeof(float));
      return;
    case Type::kF16:
      return ConvertAll<HalfToFloat>(blocks, out, values);
    case Type::kBF16:
      return ConvertAll<Bf16ToFloat>(blocks, out, values);
    case Type::kQ8_0:
      return ExpandAll<BlockQ8_0>(blocks, out, values);
    case Type::kQ4_0:
      return ExpandAll<BlockQ4_0>(blocks, out, values);
    case Type::kQ5_0:
      return ExpandAll<BlockQ5_0>(blocks, out, values);
    case Type::kQ4_K:
      return ExpandAll<BlockQ4_K>(blocks, out, values);
    case Type::kQ4_1:
      return ExpandAll<BlockQ4_1>(blocks, out, values);
    case Type::kQ5_1:
      return ExpandAll<BlockQ5_1>(blocks, out, values);
    case Type::kQ2_K:
      return ExpandAll<BlockQ2_K>(blocks, out, values);
    case Type::kQ3_K:
      return ExpandAll<BlockQ3_K>(blocks, out, values);
    case Type::kQ5_K:
      return ExpandAll<BlockQ5_K>(blocks, out, values);
    case Type::kIQ4_NL:
      return ExpandAll<BlockIQ4_NL>(blocks, out, values);
    case Type::kIQ4_XS:
      return ExpandAll<BlockIQ4_XS>(blocks, out, values);
    case Type::kMXFP4:
      return ExpandAll<BlockMXFP4>(blocks, out, values);
    case Type::kNVFP4:
      return ExpandAll<BlockNVFP4>(blocks, out, values);
    case Type::kQ6_K:
      return ExpandAll<BlockQ6_K>(blocks, out, values);
    case Type::kIQ1_S:
      return ExpandAll<BlockIQ1_S>(blocks, out, values);
    case Type::kIQ1_M:
      return ExpandAll<BlockIQ1_M>(blocks, out, values);
    case Type::kIQ2_XXS:
      return ExpandAll<BlockIQ2_XXS>(blocks, out, values);
    case Type::kIQ2_XS:
      return ExpandAll<BlockIQ2_XS>(blocks, out, values);
    case Type::kIQ2_S:
      return ExpandAll<BlockIQ2_S>(blocks, out, values);
    case Type::kIQ3_XXS:
      return ExpandAll<BlockIQ3_XXS>(blocks, out, values);
    case Type::kIQ3_S:
      return ExpandAll<BlockIQ3_S>(blocks, out, values);
    case Type::kQ1_0:
      return ExpandAll<BlockQ1_0>(blocks, out, values);
    case Type::kQ2_0:
      return ExpandAll<BlockQ2_0>(blocks, out, values);
    case Type::kTQ1_0:
      return ExpandAll<BlockTQ1_0>(blocks, out, values);
    case Type::kTQ2_0:
      return ExpandAll<BlockTQ2_0>(blocks, out, values);
    default:
      break;
  }
  TANDEM_CHECK(false) << "type " << Name(type) << " cannot be computed with";
}

}  // namespace tandem::tensor
