// Primitives for reading packs (packs.h) on a GPU: loads of words, and bytes that are looked up or
// expanded four at a time.
//
// A word holds four bytes, the first in its lowest bits. Loads take the read-only path: the bytes
// must not change while the kernel runs.
#ifndef TANDEM_KERNELS_CUDA_DEVICE_BLOCK_WORDS_H_
#define TANDEM_KERNELS_CUDA_DEVICE_BLOCK_WORDS_H_

#include <cuda_runtime.h>

#include <cstddef>
#include <cstdint>

#include "common/tensor/codebook.h"

namespace tandem::kernels::cuda {

// kWords words from `data`, which is aligned to as many of them as one load takes: 4, 2 or 1.
template <int kWords>
__device__ __forceinline__ void LoadWords(const std::byte* data, uint32_t (&words)[kWords]) {
  if constexpr (kWords % 4 == 0) {
    const auto* from = reinterpret_cast<const uint4*>(data);
#pragma unroll
    for (int i = 0; i < kWords / 4; ++i) {
      const uint4 four = __ldg(from + i);
      words[4 * i] = four.x;
      words[4 * i + 1] = four.y;
      words[4 * i + 2] = four.z;
      words[4 * i + 3] = four.w;
    }
  } else if constexpr (kWords % 2 == 0) {
    const auto* from = reinterpret_cast<const uint2*>(data);
#pragma unroll
    for (int i = 0; i < kWords / 2; ++i) {
      const uint2 two = __ldg(from + i);
      words[2 * i] = two.x;
      words[2 * i + 1] = two.y;
    }
  } else {
    const auto* from = reinterpret_cast<const uint32_t*>(data);
#pragma unroll
    for (int i = 0; i < kWords; ++i) words[i] = __ldg(from + i);
  }
}

// A 16-bit number at an even address.
__device__ __forceinline__ uint32_t LoadShort(const std::byte* data) {
  return __ldg(reinterpret_cast<const unsigned short*>(data));
}
__device__ __forceinline__ uint32_t LoadByte(const std::byte* data) {
  return __ldg(reinterpret_cast<const unsigned char*>(data));
}

// Bits 0 to 3 of `bits` as the lowest bits of four bytes.
__device__ __forceinline__ uint32_t SpreadBits(uint32_t bits) {
  return ((bits & 15) * 0x00204081u) & 0x01010101u;
}

// Four entries of a codebook as a word.
constexpr uint32_t CodebookWord(const tensor::Codebook& book, int first) {
  uint32_t word = 0;
  for (int i = 0; i < 4; ++i) {
    word |= static_cast<uint32_t>(static_cast<uint8_t>(book.value[first + i])) << (8 * i);
  }
  return word;
}

// The entries for the four indices in bits 0 to 15, as four bytes. A table of 16 is two tables of
// 8, each read by one byte permutation; a third permutation selects by the index's top bit.
template <uint32_t k0, uint32_t k1, uint32_t k2, uint32_t k3>
__device__ __forceinline__ uint32_t LookUp(uint32_t indices) {
  const uint32_t low_half = __byte_perm(k0, k1, indices & 0x7777);
  const uint32_t high_half = __byte_perm(k2, k3, indices & 0x7777);
  return __byte_perm(low_half, high_half, 0x3210 | ((indices & 0x8888) >> 1));
}
template <typename Book>
__device__ __forceinline__ uint32_t LookUpIn(uint32_t indices) {
  return LookUp<CodebookWord(Book::kValues, 0), CodebookWord(Book::kValues, 4),
                CodebookWord(Book::kValues, 8), CodebookWord(Book::kValues, 12)>(indices);
}

// The entries for the low and for the high halves of a word's bytes.
template <typename Book>
__device__ __forceinline__ void LookUpHalves(uint32_t word, uint32_t& low, uint32_t& high) {
  // Low and high halves of bytes 0 and 1, then of 2 and 3.
  const uint32_t front = LookUpIn<Book>(word & 0xffff);
  const uint32_t back = LookUpIn<Book>(word >> 16);
  low = __byte_perm(front, back, 0x6420);
  high = __byte_perm(front, back, 0x7531);
}
// The entries for a word's bytes, which are indices.
template <typename Book>
__device__ __forceinline__ uint32_t LookUpBytes(uint32_t word) {
  const uint32_t pairs = (word | word >> 4) & 0x00ff00ff;
  return LookUpIn<Book>((pairs | pairs >> 8) & 0xffff);
}

struct Iq4Book {
  static constexpr tensor::Codebook kValues = tensor::kIq4Codebook;
};
struct Mxfp4Book {
  static constexpr tensor::Codebook kValues = tensor::kMxfp4Codebook;
};

}  // namespace tandem::kernels::cuda

#endif  // TANDEM_KERNELS_CUDA_DEVICE_BLOCK_WORDS_H_
