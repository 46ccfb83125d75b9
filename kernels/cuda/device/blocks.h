// Reading weights of every type on a GPU: single values, eight at a time, and int8 dot products of
// 32.
//
// A row begins at a multiple of 16 bytes (kernels/cuda/weight_upload.cc). One of a block-quantised
// type is packs (packs.h). Bytes are read through the read-only path. Dequantised values have the
// bits of tensor::Dequantize.
//
// A block-quantised format is a Format<type> with: Codes(at, first, codes): words [first, first +
// kWords) of the 8 that hold the 32 codes of a group of 32, one byte each, kWords 1, 2 or 8 and
// first a multiple of it; Scales(at): those of the group; `at` is in global memory (of pointers) or
// in shared memory (of StagedBytes); kOffset: subtracted from each code; kHasMin: a minimum is
// subtracted from the product; kHalves: each 16 values have their own scales.
// value = scale * (code - kOffset) - min.
#ifndef TANDEM_KERNELS_CUDA_DEVICE_BLOCKS_H_
#define TANDEM_KERNELS_CUDA_DEVICE_BLOCKS_H_

#include <cuda_runtime.h>

#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "common/tensor/type.h"
#include "kernels/cuda/device/block_words.h"
#include "kernels/cuda/device/blocks_dispatch.h"
#include "kernels/cuda/device/blocks_of_256.h"
#include "kernels/cuda/device/blocks_of_32.h"
#include "kernels/cuda/device/blocks_of_64.h"
#include "kernels/cuda/device/blocks_of_eighths.h"
#include "kernels/cuda/device/blocks_of_few_bits.h"
#include "kernels/cuda/device/blocks_of_grids.h"
#include "kernels/cuda/device/int8_group.h"
#include "kernels/cuda/device/numbers.h"
#include "kernels/cuda/device/packs.h"
#include "kernels/cuda/device/staged_bytes.h"

namespace tandem::kernels::cuda {

// 32 weights, unpacked once and multiplied with many activations.
template <tensor::Type kType>
struct WeightGroup {
  uint32_t codes[8];
  GroupScales scales;
};

// Group `group` of a row. in_octet: group % 8, which a loop over every eighth may know to stay.
template <tensor::Type kType>
__device__ __forceinline__ PackedGroup<const std::byte*> GroupAt(const std::byte* row,
                                                                 uint32_t group,
                                                                 uint32_t in_octet) {
  constexpr PackLayout kPack = PackOf(kType);
  constexpr uint32_t kBytes = kPack.bytes(), kGroups = kPack.values() / 32;
  constexpr uint32_t kBlockGroups = kPack.block_values / 32;
  const uint32_t in_pack = kGroups == 8 ? in_octet : group % kGroups;
  const std::byte* const head = row + static_cast<size_t>(group / kGroups) * kBytes;
  return {head, head + kPack.head_bytes + in_pack / kBlockGroups * kPack.body_bytes, in_pack};
}
// The group of column `col`.
template <tensor::Type kType>
__device__ __forceinline__ PackedGroup<const std::byte*> GroupOf(const std::byte* row,
                                                                 uint32_t col) {
  return GroupAt<kType>(row, col / 32, col / 32 % 8);
}

// Byte `i` of a word of codes: signed for Q8_0, codebooks and grids with signs; all others are
// below 64.
__device__ __forceinline__ int CodeAt(uint32_t word, uint32_t i) {
  return static_cast<int8_t>((word >> (8 * i)) & 0xff);
}

template <tensor::Type kType>
__device__ __forceinline__ float ValueOf(int code, const GroupScales& scales, bool second) {
  // Not fused: tensor::Dequantize rounds the product.
  const float product = __fmul_rn(second ? scales.scale[1] : scales.scale[0],
                                  static_cast<float>(code - Format<kType>::kOffset));
  if constexpr (!Format<kType>::kHasMin) return product;
  return __fadd_rn(product, -(second ? scales.min[1] : scales.min[0]));
}

// One value. Simple rather than fast.
template <tensor::Type kType>
__device__ __forceinline__ float ValueAt(const std::byte* row, uint32_t col) {
  if constexpr (kType == tensor::Type::kF32) {
    return __ldg(reinterpret_cast<const float*>(row) + col);
  } else if constexpr (kType == tensor::Type::kF16) {
    return HalfToFloat(LoadShort(row + size_t{2} * col));
  } else if constexpr (kType == tensor::Type::kBF16) {
    return Bf16ToFloat(LoadShort(row + size_t{2} * col));
  } else {
    const auto group = GroupOf<kType>(row, col);
    uint32_t codes[1];
    Format<kType>::Codes(group, col % 32 / 4, codes);
    return ValueOf<kType>(CodeAt(codes[0], col % 4), Format<kType>::Scales(group), col % 32 >= 16);
  }
}

// Values [col, col + 8), col a multiple of 8.
template <tensor::Type kType>
__device__ __forceinline__ void Dequantize8(const std::byte* row, uint32_t col, float (&out)[8]) {
  if constexpr (kType == tensor::Type::kF32) {
    uint32_t words[8];
    LoadWords(row + size_t{4} * col, words);
#pragma unroll
    for (int i = 0; i < 8; ++i) out[i] = __uint_as_float(words[i]);
  } else if constexpr (IsPlain(kType)) {
    uint32_t words[4];
    LoadWords(row + size_t{2} * col, words);
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const auto low = static_cast<uint16_t>(words[i] & 0xffff);
      const auto high = static_cast<uint16_t>(words[i] >> 16);
      out[2 * i] = kType == tensor::Type::kF16 ? HalfToFloat(low) : Bf16ToFloat(low);
      out[2 * i + 1] = kType == tensor::Type::kF16 ? HalfToFloat(high) : Bf16ToFloat(high);
    }
  } else {
    const auto group = GroupOf<kType>(row, col);
    const GroupScales scales = Format<kType>::Scales(group);
    uint32_t codes[2];
    Format<kType>::Codes(group, col % 32 / 4, codes);
#pragma unroll
    for (int i = 0; i < 8; ++i) {
      out[i] = ValueOf<kType>(CodeAt(codes[i / 4], i % 4), scales, col % 32 >= 16);
    }
  }
}

// Weights of a group of a block-quantised type; see GroupAt.
template <tensor::Type kType>
__device__ __forceinline__ WeightGroup<kType> LoadGroup(const std::byte* row, uint32_t group,
                                                        uint32_t in_octet) {
  const auto at = GroupAt<kType>(row, group, in_octet);
  WeightGroup<kType> weights;
  Format<kType>::Codes(at, 0, weights.codes);
  weights.scales = Format<kType>::Scales(at);
  return weights;
}

// Calls f with std::integral_constant<tensor::Type, type>, if the list has the type.
template <tensor::Type... kTypes, typename F>
__device__ __forceinline__ void ForType(TypeList<kTypes...>, tensor::Type type, F f) {
  (
      [&] {
        if (type == kTypes) f(std::integral_constant<tensor::Type, kTypes>());
      }(),
      ...);
}

// From its 48 bytes.
__device__ __forceinline__ Int8Group MakeInt8Group(uint4 low, uint4 high, uint4 end) {
  return {{static_cast<int>(low.x), static_cast<int>(low.y), static_cast<int>(low.z),
           static_cast<int>(low.w), static_cast<int>(high.x), static_cast<int>(high.y),
           static_cast<int>(high.z), static_cast<int>(high.w)},
          __uint_as_float(end.x),
          static_cast<int>(end.y),
          static_cast<int>(end.z)};
}
// Activations that an earlier kernel has written, in global memory: by plain loads, as it may still
// write them when this kernel begins (launch_order.h).
__device__ __forceinline__ Int8Group LoadInt8Group(const Int8Group* from) {
  const auto* const words = reinterpret_cast<const uint4*>(from);
  return MakeInt8Group(words[0], words[1], words[2]);
}
// The same in shared memory.
__device__ __forceinline__ Int8Group LoadInt8Group(StagedBytes from) {
  const SharedArray<uint4> words = from.words.As<uint4>() + from.at / 16;
  return MakeInt8Group(words[0], words[1], words[2]);
}

// Sums of a product of 32 weights and 32 bytes: over the first and the last 16 of them if the
// format has kHalves, else `low` over all 32.
struct HalfSums {
  float low;
  float high;
};

// The product without the bytes' scale: `products` are sums of (code - kOffset) * byte, `bytes` of
// bytes. Every product in bytes is made of this, with fused operations written out, so that its
// bits are the same wherever it is inlined.
template <tensor::Type kType>
__device__ __forceinline__ float Scaled(const GroupScales& scales, HalfSums products,
                                        HalfSums bytes) {
  using F = Format<kType>;
  float sum = __fmul_rn(scales.scale[0], products.low);
  if constexpr (F::kHalves) sum = fmaf(scales.scale[1], products.high, sum);
  if constexpr (F::kHasMin) sum = fmaf(-scales.min[0], bytes.low, sum);
  if constexpr (F::kHasMin && F::kHalves) sum = fmaf(-scales.min[1], bytes.high, sum);
  return sum;
}
template <tensor::Type kType>
__device__ __forceinline__ HalfSums HalfSumsOf(int low, int high) {
  if constexpr (Format<kType>::kHalves) return {static_cast<float>(low), static_cast<float>(high)};
  return {static_cast<float>(low + high), 0};
}

// sum + w . x: exact in integers, scaled in float.
template <tensor::Type kType>
__device__ __forceinline__ float MultiplyAdd(const WeightGroup<kType>& w, const Int8Group& x,
                                             float sum) {
  constexpr int kOffset = Format<kType>::kOffset;
  int low = 0, high = 0;
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    low = __dp4a(static_cast<int>(w.codes[i]), x.q[i], low);
    high = __dp4a(static_cast<int>(w.codes[i + 4]), x.q[i + 4], high);
  }
  const HalfSums products =
      HalfSumsOf<kType>(low - kOffset * x.sum_low, high - kOffset * x.sum_high);
  return fmaf(Scaled<kType>(w.scales, products, HalfSumsOf<kType>(x.sum_low, x.sum_high)), x.scale,
              sum);
}

template <tensor::Type kType>
__device__ __forceinline__ float Dot32(const std::byte* row, uint32_t col, const Int8Group& x) {
  return MultiplyAdd(LoadGroup<kType>(row, col / 32, col / 32 % 8), x, 0.0f);
}

}  // namespace tandem::kernels::cuda

#endif  // TANDEM_KERNELS_CUDA_DEVICE_BLOCKS_H_
