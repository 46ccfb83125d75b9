// GGUF's blocks of one or two bits per value with one scale, on a GPU. Required members of a
// format: see blocks.h. Fields: common/tensor/blocks_of_few_bits.h; where they lie: packs.h.
#ifndef TANDEM_KERNELS_CUDA_DEVICE_BLOCKS_OF_FEW_BITS_H_
#define TANDEM_KERNELS_CUDA_DEVICE_BLOCKS_OF_FEW_BITS_H_

#include <cuda_runtime.h>

#include <cstdint>

#include "common/tensor/type.h"
#include "kernels/cuda/device/block_words.h"
#include "kernels/cuda/device/blocks_of_256.h"
#include "kernels/cuda/device/blocks_of_32.h"
#include "kernels/cuda/device/numbers.h"
#include "kernels/cuda/device/packs.h"

namespace tandem::kernels::cuda {

// What these formats have in common: codes are one more than values, and the block's half is the
// first field of the head.
template <tensor::Type kType>
struct FewBitsFormat {
  static constexpr int kOffset = 1;
  static constexpr bool kHasMin = false, kHalves = false;
  static constexpr uint32_t kBlockGroups = PackOf(kType).block_values / 32;
  template <typename Bytes>
  static __device__ __forceinline__ GroupScales Scales(const PackedGroup<Bytes>& at) {
    return OneScale(HalfToFloat(LoadShort(at.head + 2 * (at.group / kBlockGroups))));
  }
};

template <>
struct Format<tensor::Type::kQ1_0> : FewBitsFormat<tensor::Type::kQ1_0> {
  template <typename Bytes, int kWords>
  static __device__ __forceinline__ void Codes(const PackedGroup<Bytes>& at, uint32_t first,
                                               uint32_t (&codes)[kWords]) {
    uint32_t bits[1];
    LoadWords(at.body + 4 * (at.group % kBlockGroups), bits);
#pragma unroll
    for (uint32_t i = 0; i < kWords; ++i) codes[i] = SpreadBits(bits[0] >> 4 * (first + i)) << 1;
  }
};

template <>
struct Format<tensor::Type::kQ2_0> : FewBitsFormat<tensor::Type::kQ2_0> {
  template <typename Bytes, int kWords>
  static __device__ __forceinline__ void Codes(const PackedGroup<Bytes>& at, uint32_t first,
                                               uint32_t (&codes)[kWords]) {
    uint32_t words[2];
    LoadWords(at.body + 8 * (at.group % kBlockGroups), words);
#pragma unroll
    for (uint32_t i = 0; i < kWords; ++i) {
      // Four pairs of bits of a byte: two to each half of the word, one to each byte.
      const uint32_t word = first + i;
      const uint32_t byte = (word < 4 ? words[0] : words[1]) >> word % 4 * 8 & 0xff;
      const uint32_t halves = (byte | byte << 12) & 0x000f000f;
      codes[i] = (halves | halves << 6) & 0x03030303;
    }
  }
};

template <>
struct Format<tensor::Type::kTQ2_0> : FewBitsFormat<tensor::Type::kTQ2_0> {
  template <typename Bytes, int kWords>
  static __device__ __forceinline__ void Codes(const PackedGroup<Bytes>& at, uint32_t first,
                                               uint32_t (&codes)[kWords]) {
    LoadBits<2>(at.body + 8 * (at.group % 8), first, codes);
  }
};

// Digit `k` of four bytes of TQ1_0, two at a time in halves of a word.
__device__ __forceinline__ uint32_t DigitsOf(uint32_t bytes, uint32_t k) {
  constexpr uint32_t kLow = 0x00ff00ff;
  const uint32_t power = __byte_perm(0x1b090301, 81, 0x5550 | k);  // of three
  const uint32_t even = (bytes & kLow) * power & kLow, odd = (bytes >> 8 & kLow) * power & kLow;
  return (even * 3 >> 8 & 0x00030003) | (odd * 3 & 0x03000300);
}

// Half h of group g, 16 values, is
//   g < 5       digit g of bytes 16 h to 16 h + 15
//   g = 5, 6    digit 2 (g - 5) + h of bytes 32 to 47
//   g = 7       digit 4 of bytes 32 to 47, then digits 0 to 3 of the four bytes of qh
template <>
struct Format<tensor::Type::kTQ1_0> : FewBitsFormat<tensor::Type::kTQ1_0> {
  static constexpr uint32_t kQh = PackOf(tensor::Type::kTQ1_0).head[1].at;
  template <typename Bytes, int kWords>
  static __device__ __forceinline__ void Codes(const PackedGroup<Bytes>& at, uint32_t first,
                                               uint32_t (&codes)[kWords]) {
    constexpr uint32_t kAtOnce = kWords < 4 ? kWords : 4;
    const uint32_t group = at.group % 8;
    uint32_t qh[1];
    LoadWords(at.head + kQh + 4 * (at.group / 8), qh);
#pragma unroll
    for (uint32_t i = 0; i < kWords; i += kAtOnce) {
      const uint32_t half = (first + i) / 4, in_half = (first + i) % 4;
      const uint32_t digit = group < 5 ? group : 2 * (group - 5) + half;
      uint32_t bytes[kAtOnce];
      LoadWords(at.body + ((group < 5 ? 16 * half : 32) + 4 * in_half), bytes);
#pragma unroll
      for (uint32_t j = 0; j < kAtOnce; ++j) {
        const bool last = digit == 5;
        codes[i + j] = DigitsOf(last ? qh[0] : bytes[j], last ? in_half + j : digit);
      }
    }
  }
};

}  // namespace tandem::kernels::cuda

#endif  // TANDEM_KERNELS_CUDA_DEVICE_BLOCKS_OF_FEW_BITS_H_
