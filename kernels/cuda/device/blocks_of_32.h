// GGUF's blocks of 32 values on a GPU, and IQ4_XS, whose groups of 32 have the same form. Required
// members of a format: see blocks.h. Layouts: common/tensor/blocks.
#ifndef TANDEM_KERNELS_CUDA_DEVICE_BLOCKS_OF_32_H_
#define TANDEM_KERNELS_CUDA_DEVICE_BLOCKS_OF_32_H_

#include <cuda_runtime.h>

#include <cstddef>
#include <cstdint>

#include "common/tensor/blocks_of_256.h"
#include "common/tensor/blocks_of_32.h"
#include "common/tensor/type.h"
#include "kernels/cuda/device/block_words.h"
#include "kernels/cuda/device/numbers.h"

namespace tandem::kernels::cuda {

// Scale and minimum of the first and the second 16 of 32 values; formats with one of each for all
// 32 return it twice.
struct GroupScales {
  float scale[2];
  float min[2];
};
__device__ __forceinline__ GroupScales OneScale(float scale, float min = 0) {
  return {{scale, scale}, {min, min}};
}

template <tensor::Type kType>
struct Format;

// Words [first, first + kWords) of 32 four-bit codes: byte j of `qs` holds code j in its low half,
// code j + 16 in its high half. All 8 words, or an even part of either half.
template <int kAlign, typename Bytes, int kWords>
__device__ __forceinline__ void LoadNibbles(Bytes qs, uint32_t first, uint32_t (&codes)[kWords]) {
  if constexpr (kWords == 8) {
    uint32_t words[4];
    LoadWords<kAlign>(qs, words);
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      codes[i] = words[i] & 0x0f0f0f0f;
      codes[i + 4] = (words[i] >> 4) & 0x0f0f0f0f;
    }
  } else {
    LoadWords < kAlign<4 * kWords ? kAlign : 4 * kWords>(qs + first % 4 * 4, codes);
#pragma unroll
    for (int i = 0; i < kWords; ++i) codes[i] = (codes[i] >> first / 4 * 4) & 0x0f0f0f0f;
  }
}

// The same, with each code replaced by its value in a codebook.
template <typename Book, int kAlign, typename Bytes, int kWords>
__device__ __forceinline__ void LoadCodebook(Bytes qs, uint32_t first, uint32_t (&values)[kWords]) {
  if constexpr (kWords == 8) {
    uint32_t words[4];
    LoadWords<kAlign>(qs, words);
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      // Low and high halves of bytes 0 and 1, then of 2 and 3.
      const uint32_t front = LookUpIn<Book>(words[i] & 0xffff);
      const uint32_t back = LookUpIn<Book>(words[i] >> 16);
      values[i] = __byte_perm(front, back, 0x6420);
      values[i + 4] = __byte_perm(front, back, 0x7531);
    }
  } else {
    uint32_t codes[kWords];
    LoadNibbles<kAlign>(qs, first, codes);
#pragma unroll
    for (int i = 0; i < kWords; ++i) {
      const uint32_t pairs = (codes[i] | codes[i] >> 4) & 0x00ff00ff;
      values[i] = LookUpIn<Book>((pairs | pairs >> 8) & 0xffff);
    }
  }
}

template <>
struct Format<tensor::Type::kQ4_0> {
  using Block = tensor::BlockQ4_0;
  static constexpr int kOffset = 8;
  static constexpr bool kHasMin = false, kHalves = false;
  template <typename Bytes, int kWords>
  static __device__ __forceinline__ void Codes(Bytes block, uint32_t, uint32_t first,
                                               uint32_t (&codes)[kWords]) {
    LoadNibbles<2>(block + offsetof(Block, qs), first, codes);
  }
  template <typename Bytes>
  static __device__ __forceinline__ GroupScales Scales(Bytes block, uint32_t) {
    return OneScale(HalfToFloat(LoadShort(block)));
  }
};

template <>
struct Format<tensor::Type::kQ4_1> {
  using Block = tensor::BlockQ4_1;
  static constexpr int kOffset = 0;
  static constexpr bool kHasMin = true, kHalves = false;
  template <typename Bytes, int kWords>
  static __device__ __forceinline__ void Codes(Bytes block, uint32_t, uint32_t first,
                                               uint32_t (&codes)[kWords]) {
    LoadNibbles<4>(block + offsetof(Block, qs), first, codes);
  }
  template <typename Bytes>
  static __device__ __forceinline__ GroupScales Scales(Bytes block, uint32_t) {
    uint32_t pair[1];
    LoadWords<4>(block, pair);
    return OneScale(HalfToFloat(pair[0] & 0xffff), -HalfToFloat(pair[0] >> 16));
  }
};

// Q5_0 and Q5_1: nibbles, and a word whose bit i is the fifth bit of value i.
template <typename Block, int kAlign, typename Bytes, int kWords>
__device__ __forceinline__ void LoadFiveBits(Bytes block, uint32_t first,
                                             uint32_t (&codes)[kWords]) {
  LoadNibbles<kAlign>(block + offsetof(Block, qs), first, codes);
  uint32_t fifth[1];
  LoadWords<kAlign == 8 ? 4 : kAlign>(block + offsetof(Block, qh), fifth);
#pragma unroll
  for (int i = 0; i < kWords; ++i) codes[i] |= SpreadBits(fifth[0] >> (4 * (first + i))) << 4;
}

template <>
struct Format<tensor::Type::kQ5_0> {
  using Block = tensor::BlockQ5_0;
  static constexpr int kOffset = 16;
  static constexpr bool kHasMin = false, kHalves = false;
  template <typename Bytes, int kWords>
  static __device__ __forceinline__ void Codes(Bytes block, uint32_t, uint32_t first,
                                               uint32_t (&codes)[kWords]) {
    LoadFiveBits<Block, 2>(block, first, codes);
  }
  template <typename Bytes>
  static __device__ __forceinline__ GroupScales Scales(Bytes block, uint32_t) {
    return OneScale(HalfToFloat(LoadShort(block)));
  }
};

template <>
struct Format<tensor::Type::kQ5_1> {
  using Block = tensor::BlockQ5_1;
  static constexpr int kOffset = 0;
  static constexpr bool kHasMin = true, kHalves = false;
  template <typename Bytes, int kWords>
  static __device__ __forceinline__ void Codes(Bytes block, uint32_t, uint32_t first,
                                               uint32_t (&codes)[kWords]) {
    LoadFiveBits<Block, 8>(block, first, codes);
  }
  template <typename Bytes>
  static __device__ __forceinline__ GroupScales Scales(Bytes block, uint32_t) {
    uint32_t pair[1];
    LoadWords<4>(block, pair);
    return OneScale(HalfToFloat(pair[0] & 0xffff), -HalfToFloat(pair[0] >> 16));
  }
};

template <>
struct Format<tensor::Type::kQ8_0> {
  using Block = tensor::BlockQ8_0;
  static constexpr int kOffset = 0;
  static constexpr bool kHasMin = false, kHalves = false;
  template <typename Bytes, int kWords>
  static __device__ __forceinline__ void Codes(Bytes block, uint32_t, uint32_t first,
                                               uint32_t (&codes)[kWords]) {
    LoadWords<2>(block + offsetof(Block, qs) + 4 * first, codes);
  }
  template <typename Bytes>
  static __device__ __forceinline__ GroupScales Scales(Bytes block, uint32_t) {
    return OneScale(HalfToFloat(LoadShort(block)));
  }
};

template <>
struct Format<tensor::Type::kIQ4_NL> {
  using Block = tensor::BlockIQ4_NL;
  static constexpr int kOffset = 0;
  static constexpr bool kHasMin = false, kHalves = false;
  template <typename Bytes, int kWords>
  static __device__ __forceinline__ void Codes(Bytes block, uint32_t, uint32_t first,
                                               uint32_t (&codes)[kWords]) {
    LoadCodebook<Iq4Book, 2>(block + offsetof(Block, qs), first, codes);
  }
  template <typename Bytes>
  static __device__ __forceinline__ GroupScales Scales(Bytes block, uint32_t) {
    return OneScale(HalfToFloat(LoadShort(block)));
  }
};

template <>
struct Format<tensor::Type::kIQ4_XS> {
  using Block = tensor::BlockIQ4_XS;
  static constexpr int kOffset = 0;
  static constexpr bool kHasMin = false, kHalves = false;
  template <typename Bytes, int kWords>
  static __device__ __forceinline__ void Codes(Bytes block, uint32_t group, uint32_t first,
                                               uint32_t (&codes)[kWords]) {
    LoadCodebook<Iq4Book, 8>(block + offsetof(Block, qs) + 16 * group, first, codes);
  }
  template <typename Bytes>
  static __device__ __forceinline__ GroupScales Scales(Bytes block, uint32_t group) {
    uint32_t head[2];  // d and scales_h, then scales_l
    LoadWords<8>(block, head);
    const uint32_t low = (head[1] >> (4 * group)) & 15;
    const uint32_t high = (head[0] >> (16 + 2 * group)) & 3;
    return OneScale(HalfToFloat(head[0] & 0xffff) *
                    static_cast<float>(static_cast<int>(low | high << 4) - 32));
  }
};

template <>
struct Format<tensor::Type::kMXFP4> {
  using Block = tensor::BlockMXFP4;
  static constexpr int kOffset = 0;
  static constexpr bool kHasMin = false, kHalves = false;
  template <typename Bytes, int kWords>
  static __device__ __forceinline__ void Codes(Bytes block, uint32_t, uint32_t first,
                                               uint32_t (&codes)[kWords]) {
    LoadCodebook<Mxfp4Book, 1>(block + offsetof(Block, qs), first, codes);
  }
  template <typename Bytes>
  static __device__ __forceinline__ GroupScales Scales(Bytes block, uint32_t) {
    // 2^(e - 128); the two smallest are subnormal.
    const uint32_t e = LoadByte(block);
    return OneScale(__uint_as_float(e < 2 ? 0x00200000u << e : (e - 1) << 23));
  }
};

}  // namespace tandem::kernels::cuda

#endif  // TANDEM_KERNELS_CUDA_DEVICE_BLOCKS_OF_32_H_
