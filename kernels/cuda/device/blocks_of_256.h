// GGUF's blocks of 256 values with scales per 16 or 32 of them (K-quants) on a GPU. Required
// members of a format: see blocks.h. Layouts: common/tensor/blocks.
#ifndef TANDEM_KERNELS_CUDA_DEVICE_BLOCKS_OF_256_H_
#define TANDEM_KERNELS_CUDA_DEVICE_BLOCKS_OF_256_H_

#include <cuda_runtime.h>

#include <cstddef>
#include <cstdint>

#include "common/tensor/blocks_of_256.h"
#include "common/tensor/type.h"
#include "kernels/cuda/device/block_words.h"
#include "kernels/cuda/device/blocks_of_32.h"
#include "kernels/cuda/device/numbers.h"

namespace tandem::kernels::cuda {

// Words [first, first + kWords) of 32 bytes at `data`, shifted right and masked per byte.
template <int kAlign, typename Bytes, int kWords>
__device__ __forceinline__ void LoadBits(Bytes data, uint32_t first, uint32_t shift, uint32_t mask,
                                         uint32_t (&codes)[kWords]) {
  LoadWords<(kWords == 8 || kAlign < 4 * kWords) ? kAlign : 4 * kWords>(data + 4 * first, codes);
#pragma unroll
  for (int i = 0; i < kWords; ++i) codes[i] = (codes[i] >> shift) & mask;
}
// Adds such bits above the existing ones.
template <int kAlign, typename Bytes, int kWords>
__device__ __forceinline__ void AddHighBits(Bytes data, uint32_t first, uint32_t shift,
                                            uint32_t mask, int place, uint32_t (&codes)[kWords]) {
  uint32_t high[kWords];
  LoadBits<kAlign>(data, first, shift, mask, high);
#pragma unroll
  for (int i = 0; i < kWords; ++i) codes[i] |= high[i] << place;
}

// Q4_K and Q5_K begin with d, dmin and the 12 bytes of KScales (common/tensor/blocks_of_256.h):
// one load of 16 bytes, from which a group's 6-bit numbers are extracted by shifts.
template <typename Bytes>
__device__ __forceinline__ GroupScales KGroupScales(Bytes block, uint32_t group) {
  uint32_t head[4];
  LoadWords<16>(block, head);
  const uint32_t at = 8 * (group % 4);
  uint32_t scale, min;
  if (group < 4) {
    scale = (head[1] >> at) & 63;
    min = (head[2] >> at) & 63;
  } else {
    const uint32_t low = head[3] >> at;
    scale = (low & 15) | ((head[1] >> at) & 0xc0) >> 2;
    min = ((low >> 4) & 15) | ((head[2] >> at) & 0xc0) >> 2;
  }
  return OneScale(HalfToFloat(head[0] & 0xffff) * static_cast<float>(scale),
                  HalfToFloat(head[0] >> 16) * static_cast<float>(min));
}

template <>
struct Format<tensor::Type::kQ4_K> {
  using Block = tensor::BlockQ4_K;
  static constexpr int kOffset = 0;
  static constexpr bool kHasMin = true, kHalves = false;
  template <typename Bytes, int kWords>
  static __device__ __forceinline__ void Codes(Bytes block, uint32_t group, uint32_t first,
                                               uint32_t (&codes)[kWords]) {
    LoadBits<16>(block + offsetof(Block, qs) + group / 2 * 32, first, group % 2 * 4, 0x0f0f0f0f,
                 codes);
  }
  template <typename Bytes>
  static __device__ __forceinline__ GroupScales Scales(Bytes block, uint32_t group) {
    return KGroupScales(block, group);
  }
};

template <>
struct Format<tensor::Type::kQ5_K> {
  using Block = tensor::BlockQ5_K;
  static constexpr int kOffset = 0;
  static constexpr bool kHasMin = true, kHalves = false;
  template <typename Bytes, int kWords>
  static __device__ __forceinline__ void Codes(Bytes block, uint32_t group, uint32_t first,
                                               uint32_t (&codes)[kWords]) {
    LoadBits<16>(block + offsetof(Block, qs) + group / 2 * 32, first, group % 2 * 4, 0x0f0f0f0f,
                 codes);
    AddHighBits<16>(block + offsetof(Block, qh), first, group, 0x01010101, 4, codes);
  }
  template <typename Bytes>
  static __device__ __forceinline__ GroupScales Scales(Bytes block, uint32_t group) {
    return KGroupScales(block, group);
  }
};

template <>
struct Format<tensor::Type::kQ2_K> {
  using Block = tensor::BlockQ2_K;
  static constexpr int kOffset = 0;
  static constexpr bool kHasMin = true, kHalves = true;
  template <typename Bytes, int kWords>
  static __device__ __forceinline__ void Codes(Bytes block, uint32_t group, uint32_t first,
                                               uint32_t (&codes)[kWords]) {
    LoadBits<4>(block + offsetof(Block, qs) + group / 4 * 32, first, group % 4 * 2, 0x03030303,
                codes);
  }
  template <typename Bytes>
  static __device__ __forceinline__ GroupScales Scales(Bytes block, uint32_t group) {
    uint32_t pair[1];  // d and dmin
    LoadWords<4>(block + offsetof(Block, d), pair);
    const float d = HalfToFloat(pair[0] & 0xffff), dmin = HalfToFloat(pair[0] >> 16);
    const uint32_t bits = LoadShort(block + 2 * group);  // of both halves of 16
    return {{d * static_cast<float>(bits & 15), d * static_cast<float>((bits >> 8) & 15)},
            {dmin * static_cast<float>((bits >> 4) & 15), dmin * static_cast<float>(bits >> 12)}};
  }
};

template <>
struct Format<tensor::Type::kQ3_K> {
  using Block = tensor::BlockQ3_K;
  static constexpr int kOffset = 4;
  static constexpr bool kHasMin = false, kHalves = true;
  template <typename Bytes, int kWords>
  static __device__ __forceinline__ void Codes(Bytes block, uint32_t group, uint32_t first,
                                               uint32_t (&codes)[kWords]) {
    LoadBits<2>(block + offsetof(Block, qs) + group / 4 * 32, first, group % 4 * 2, 0x03030303,
                codes);
    AddHighBits<2>(block + offsetof(Block, hmask), first, group, 0x01010101, 2, codes);
  }
  template <typename Bytes>
  static __device__ __forceinline__ GroupScales Scales(Bytes block, uint32_t group) {
    const float d = HalfToFloat(LoadShort(block + offsetof(Block, d)));
    const Bytes scales = block + offsetof(Block, scales);
    // Low 4 and upper 2 bits of both halves of 16, one value per byte.
    const uint32_t low = LoadShort(scales + group % 4 * 2) >> group / 4 * 4;
    const uint32_t high = LoadShort(scales + 8 + group % 2 * 2) >> group / 2 * 2;
    const uint32_t both = (low & 0x0f0f) | (high & 0x0303) << 4;
    return {{d * static_cast<float>(static_cast<int>(both & 63) - 32),
             d * static_cast<float>(static_cast<int>(both >> 8) - 32)},
            {0, 0}};
  }
};

template <>
struct Format<tensor::Type::kQ6_K> {
  using Block = tensor::BlockQ6_K;
  static constexpr int kOffset = 32;
  static constexpr bool kHasMin = false, kHalves = true;
  template <typename Bytes, int kWords>
  static __device__ __forceinline__ void Codes(Bytes block, uint32_t group, uint32_t first,
                                               uint32_t (&codes)[kWords]) {
    const uint32_t half = group / 4, k = group % 4;
    LoadBits<2>(block + 64 * half + k % 2 * 32, first, k / 2 * 4, 0x0f0f0f0f, codes);
    AddHighBits<2>(block + offsetof(Block, qh) + 32 * half, first, 2 * k, 0x03030303, 4, codes);
  }
  template <typename Bytes>
  static __device__ __forceinline__ GroupScales Scales(Bytes block, uint32_t group) {
    const float d = HalfToFloat(LoadShort(block + offsetof(Block, d)));
    const uint32_t both = LoadShort(block + offsetof(Block, scales) + 2 * group);
    return {{d * static_cast<float>(static_cast<int8_t>(both & 0xff)),
             d * static_cast<float>(static_cast<int8_t>(both >> 8))},
            {0, 0}};
  }
};

}  // namespace tandem::kernels::cuda

#endif  // TANDEM_KERNELS_CUDA_DEVICE_BLOCKS_OF_256_H_
