#include "common/tensor/dequantize.h"

#include <cstdint>
#include <cstring>

#include "common/base/check.h"
#include "common/tensor/blocks/q4_0.h"
#include "common/tensor/blocks/q4_k.h"
#include "common/tensor/blocks/q5_0.h"
#include "common/tensor/blocks/q6_k.h"
#include "common/tensor/blocks/q8_0.h"
#include "common/tensor/f16.h"

namespace tandem::tensor {
namespace {

void Expand(const BlockQ8_0& block, float* out) {
  const float d = HalfToFloat(block.d);
  for (int i = 0; i < 32; ++i) out[i] = d * static_cast<float>(block.qs[i]);
}

void Expand(const BlockQ4_0& block, float* out) {
  const float d = HalfToFloat(block.d);
  for (int j = 0; j < 16; ++j) {
    out[j] = d * static_cast<float>((block.qs[j] & 15) - 8);
    out[j + 16] = d * static_cast<float>((block.qs[j] >> 4) - 8);
  }
}

void Expand(const BlockQ5_0& block, float* out) {
  const float d = HalfToFloat(block.d);
  const uint32_t high = block.HighBits();
  for (int j = 0; j < 16; ++j) {
    const int low_value = (block.qs[j] & 15) | static_cast<int>(((high >> j) & 1) << 4);
    const int high_value = (block.qs[j] >> 4) | static_cast<int>(((high >> (j + 16)) & 1) << 4);
    out[j] = d * static_cast<float>(low_value - 16);
    out[j + 16] = d * static_cast<float>(high_value - 16);
  }
}

void Expand(const BlockQ4_K& block, float* out) {
  const float d = HalfToFloat(block.d);
  const float dmin = HalfToFloat(block.dmin);
  for (int g = 0; g < BlockQ4_K::kGroups; ++g) {
    const float scale = d * static_cast<float>(block.Scale(g));
    const float min = dmin * static_cast<float>(block.Min(g));
    const uint8_t* qs = block.qs + 32 * (g / 2);
    const int shift = g % 2 == 0 ? 0 : 4;
    for (int l = 0; l < 32; ++l) {
      out[32 * g + l] = scale * static_cast<float>((qs[l] >> shift) & 15) - min;
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
    case Type::kQ6_K:
      return ExpandAll<BlockQ6_K>(blocks, out, values);
    default:
      break;
  }
  TANDEM_CHECK(false) << "type " << Name(type) << " cannot be computed with";
}

}  // namespace tandem::tensor
