// GGUF's blocks of 32 values on a GPU, and IQ4_XS, whose groups of 32 have the same form. Required
// members of a format: see blocks.h. Fields: common/tensor/blocks; where they lie: packs.h.
#ifndef TANDEM_KERNELS_CUDA_DEVICE_BLOCKS_OF_32_H_
#define TANDEM_KERNELS_CUDA_DEVICE_BLOCKS_OF_32_H_

#include <cuda_runtime.h>

#include <cstdint>

#include "common/tensor/type.h"
#include "kernels/cuda/device/block_words.h"
#include "kernels/cuda/device/numbers.h"
#include "kernels/cuda/device/packs.h"

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

// A group of 32 values in a row of packs.
template <typename Bytes>
struct PackedGroup {
  Bytes head;      // of its pack
  Bytes body;      // of its block
  uint32_t group;  // of the pack's
};

template <tensor::Type kType>
struct Format;

// Words [first, first + kWords) of 32 four-bit codes: byte j of `qs` holds code j in its low half,
// code j + 16 in its high half. All 8 words, or an even part of either half.
template <typename Bytes, int kWords>
__device__ __forceinline__ void LoadNibbles(Bytes qs, uint32_t first, uint32_t (&codes)[kWords]) {
  if constexpr (kWords == 8) {
    uint32_t words[4];
    LoadWords(qs, words);
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      codes[i] = words[i] & 0x0f0f0f0f;
      codes[i + 4] = (words[i] >> 4) & 0x0f0f0f0f;
    }
  } else {
    LoadWords(qs + first % 4 * 4, codes);
#pragma unroll
    for (int i = 0; i < kWords; ++i) codes[i] = (codes[i] >> first / 4 * 4) & 0x0f0f0f0f;
  }
}

// The same, with each code replaced by its value in a codebook.
template <typename Book, typename Bytes, int kWords>
__device__ __forceinline__ void LoadCodebook(Bytes qs, uint32_t first, uint32_t (&values)[kWords]) {
  if constexpr (kWords == 8) {
    uint32_t words[4];
    LoadWords(qs, words);
#pragma unroll
    for (int i = 0; i < 4; ++i) LookUpHalves<Book>(words[i], values[i], values[i + 4]);
  } else {
    uint32_t codes[kWords];
    LoadNibbles(qs, first, codes);
#pragma unroll
    for (int i = 0; i < kWords; ++i) values[i] = LookUpBytes<Book>(codes[i]);
  }
}

// One half per block, or a half and an offset, as the first field of the head.
template <typename Bytes>
__device__ __forceinline__ GroupScales HalfOf(const PackedGroup<Bytes>& at) {
  return OneScale(HalfToFloat(LoadShort(at.head + 2 * at.group)));
}
template <typename Bytes>
__device__ __forceinline__ GroupScales HalfAndOffsetOf(const PackedGroup<Bytes>& at) {
  uint32_t pair[1];
  LoadWords(at.head + 4 * at.group, pair);
  return OneScale(HalfToFloat(pair[0] & 0xffff), -HalfToFloat(pair[0] >> 16));
}

template <>
struct Format<tensor::Type::kQ4_0> {
  static constexpr int kOffset = 8;
  static constexpr bool kHasMin = false, kHalves = false;
  template <typename Bytes, int kWords>
  static __device__ __forceinline__ void Codes(const PackedGroup<Bytes>& at, uint32_t first,
                                               uint32_t (&codes)[kWords]) {
    LoadNibbles(at.body, first, codes);
  }
  template <typename Bytes>
  static __device__ __forceinline__ GroupScales Scales(const PackedGroup<Bytes>& at) {
    return HalfOf(at);
  }
};

template <>
struct Format<tensor::Type::kQ4_1> {
  static constexpr int kOffset = 0;
  static constexpr bool kHasMin = true, kHalves = false;
  template <typename Bytes, int kWords>
  static __device__ __forceinline__ void Codes(const PackedGroup<Bytes>& at, uint32_t first,
                                               uint32_t (&codes)[kWords]) {
    LoadNibbles(at.body, first, codes);
  }
  template <typename Bytes>
  static __device__ __forceinline__ GroupScales Scales(const PackedGroup<Bytes>& at) {
    return HalfAndOffsetOf(at);
  }
};

// Q5_0 and Q5_1: nibbles, and a word whose bit i is the fifth bit of value i, the second field of
// the head.
template <tensor::Type kType, typename Bytes, int kWords>
__device__ __forceinline__ void LoadFiveBits(const PackedGroup<Bytes>& at, uint32_t first,
                                             uint32_t (&codes)[kWords]) {
  constexpr uint32_t kFifthBits = PackOf(kType).head[1].at;
  LoadNibbles(at.body, first, codes);
  uint32_t fifth[1];
  LoadWords(at.head + kFifthBits + 4 * at.group, fifth);
#pragma unroll
  for (int i = 0; i < kWords; ++i) codes[i] |= SpreadBits(fifth[0] >> (4 * (first + i))) << 4;
}

template <>
struct Format<tensor::Type::kQ5_0> {
  static constexpr int kOffset = 16;
  static constexpr bool kHasMin = false, kHalves = false;
  template <typename Bytes, int kWords>
  static __device__ __forceinline__ void Codes(const PackedGroup<Bytes>& at, uint32_t first,
                                               uint32_t (&codes)[kWords]) {
    LoadFiveBits<tensor::Type::kQ5_0>(at, first, codes);
  }
  template <typename Bytes>
  static __device__ __forceinline__ GroupScales Scales(const PackedGroup<Bytes>& at) {
    return HalfOf(at);
  }
};

template <>
struct Format<tensor::Type::kQ5_1> {
  static constexpr int kOffset = 0;
  static constexpr bool kHasMin = true, kHalves = false;
  template <typename Bytes, int kWords>
  static __device__ __forceinline__ void Codes(const PackedGroup<Bytes>& at, uint32_t first,
                                               uint32_t (&codes)[kWords]) {
    LoadFiveBits<tensor::Type::kQ5_1>(at, first, codes);
  }
  template <typename Bytes>
  static __device__ __forceinline__ GroupScales Scales(const PackedGroup<Bytes>& at) {
    return HalfAndOffsetOf(at);
  }
};

template <>
struct Format<tensor::Type::kQ8_0> {
  static constexpr int kOffset = 0;
  static constexpr bool kHasMin = false, kHalves = false;
  template <typename Bytes, int kWords>
  static __device__ __forceinline__ void Codes(const PackedGroup<Bytes>& at, uint32_t first,
                                               uint32_t (&codes)[kWords]) {
    LoadWords(at.body + 4 * first, codes);
  }
  template <typename Bytes>
  static __device__ __forceinline__ GroupScales Scales(const PackedGroup<Bytes>& at) {
    return HalfOf(at);
  }
};

template <>
struct Format<tensor::Type::kIQ4_NL> {
  static constexpr int kOffset = 0;
  static constexpr bool kHasMin = false, kHalves = false;
  template <typename Bytes, int kWords>
  static __device__ __forceinline__ void Codes(const PackedGroup<Bytes>& at, uint32_t first,
                                               uint32_t (&codes)[kWords]) {
    LoadCodebook<Iq4Book>(at.body, first, codes);
  }
  template <typename Bytes>
  static __device__ __forceinline__ GroupScales Scales(const PackedGroup<Bytes>& at) {
    return HalfOf(at);
  }
};

template <>
struct Format<tensor::Type::kIQ4_XS> {
  static constexpr int kOffset = 0;
  static constexpr bool kHasMin = false, kHalves = false;
  template <typename Bytes, int kWords>
  static __device__ __forceinline__ void Codes(const PackedGroup<Bytes>& at, uint32_t first,
                                               uint32_t (&codes)[kWords]) {
    LoadCodebook<Iq4Book>(at.body + 16 * (at.group % 8), first, codes);
  }
  template <typename Bytes>
  static __device__ __forceinline__ GroupScales Scales(const PackedGroup<Bytes>& at) {
    const uint32_t group = at.group % 8;
    uint32_t head[2];  // d and scales_h, then scales_l
    LoadWords(at.head + 8 * (at.group / 8), head);
    const uint32_t low = (head[1] >> (4 * group)) & 15;
    const uint32_t high = (head[0] >> (16 + 2 * group)) & 3;
    return OneScale(HalfToFloat(head[0] & 0xffff) *
                    static_cast<float>(static_cast<int>(low | high << 4) - 32));
  }
};

template <>
struct Format<tensor::Type::kMXFP4> {
  static constexpr int kOffset = 0;
  static constexpr bool kHasMin = false, kHalves = false;
  template <typename Bytes, int kWords>
  static __device__ __forceinline__ void Codes(const PackedGroup<Bytes>& at, uint32_t first,
                                               uint32_t (&codes)[kWords]) {
    LoadCodebook<Mxfp4Book>(at.body, first, codes);
  }
  template <typename Bytes>
  static __device__ __forceinline__ GroupScales Scales(const PackedGroup<Bytes>& at) {
    // 2^(e - 128); the two smallest are subnormal.
    const uint32_t e = LoadByte(at.head + at.group);
    return OneScale(__uint_as_float(e < 2 ? 0x00200000u << e : (e - 1) << 23));
  }
};

}  // namespace tandem::kernels::cuda

#endif  // TANDEM_KERNELS_CUDA_DEVICE_BLOCKS_OF_32_H_
