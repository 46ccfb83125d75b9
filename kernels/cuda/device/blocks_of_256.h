// GGUF's blocks of 256 values with scales per 16 or 32 of them (K-quants) on a GPU. Required
// members of a format: see blocks.h. Fields: common/tensor/blocks; where they lie: packs.h.
#ifndef TANDEM_KERNELS_CUDA_DEVICE_BLOCKS_OF_256_H_
#define TANDEM_KERNELS_CUDA_DEVICE_BLOCKS_OF_256_H_

#include <cuda_runtime.h>

#include <cstddef>
#include <cstdint>

#include "common/tensor/type.h"
#include "kernels/cuda/device/block_words.h"
#include "kernels/cuda/device/blocks_of_32.h"
#include "kernels/cuda/device/numbers.h"
#include "kernels/cuda/device/packs.h"

namespace tandem::kernels::cuda {

// Adds kBits bits of every code of words [first, first + kWords) to `codes`, shifted left by
// `place` in each byte. At `bits` a group has them in kBits words: those of word i of the codes in
// word i % kBits, the lowest i lowest. Words i and i + 4 share the first of two shifts.
template <int kBits, typename Bytes, int kWords>
__device__ __forceinline__ void AddBits(Bytes bits, uint32_t first, int place,
                                        uint32_t (&codes)[kWords]) {
  constexpr uint32_t kMask = ((1u << kBits) - 1) * 0x01010101u;
  constexpr int kLoaded = kWords < kBits ? kWords : kBits;
  uint32_t words[kLoaded];
  LoadWords(bits + first % kBits * 4, words);
#pragma unroll
  for (uint32_t i = 0; i < kWords; ++i) {
    const uint32_t word = first + i;
    codes[i] |= (words[i % kLoaded] >> word % 4 / kBits * kBits >> word / 4 * 4 & kMask) << place;
  }
}
template <int kBits, typename Bytes, int kWords>
__device__ __forceinline__ void LoadBits(Bytes bits, uint32_t first, uint32_t (&codes)[kWords]) {
#pragma unroll
  for (uint32_t& word : codes) word = 0;
  AddBits<kBits>(bits, first, 0, codes);
}

// Where field i of a body begins.
constexpr uint32_t BodyField(tensor::Type type, size_t i) { return PackOf(type).body[i].at; }

// The head of Q4_K and Q5_K has d, dmin and the 12 bytes of KScales
// (common/tensor/blocks_of_256.h): one load of 16 bytes, from which a group's 6-bit numbers are
// extracted by shifts.
template <typename Bytes>
__device__ __forceinline__ GroupScales KGroupScales(const PackedGroup<Bytes>& of) {
  const uint32_t group = of.group;
  uint32_t head[4];
  LoadWords(of.head, head);
  // Of groups 0 to 3 six bits of a byte; of 4 to 7 four bits, and two at the top of another.
  const uint32_t at = 8 * (group % 4);
  const bool split = group >= 4;
  const uint32_t low = split ? 15 : 63, high = split ? 0x30 : 0;
  const uint32_t scale = ((split ? head[3] : head[1]) >> at & low) | (head[1] >> (at + 2) & high);
  const uint32_t min =
      ((split ? head[3] >> 4 : head[2]) >> at & low) | (head[2] >> (at + 2) & high);
  return OneScale(HalfToFloat(head[0] & 0xffff) * static_cast<float>(scale),
                  HalfToFloat(head[0] >> 16) * static_cast<float>(min));
}

template <>
struct Format<tensor::Type::kQ4_K> {
  static constexpr int kOffset = 0;
  static constexpr bool kHasMin = true, kHalves = false;
  template <typename Bytes, int kWords>
  static __device__ __forceinline__ void Codes(const PackedGroup<Bytes>& at, uint32_t first,
                                               uint32_t (&codes)[kWords]) {
    LoadBits<4>(at.body + 16 * at.group, first, codes);
  }
  template <typename Bytes>
  static __device__ __forceinline__ GroupScales Scales(const PackedGroup<Bytes>& at) {
    return KGroupScales(at);
  }
};

template <>
struct Format<tensor::Type::kQ5_K> {
  static constexpr int kOffset = 0;
  static constexpr bool kHasMin = true, kHalves = false;
  static constexpr uint32_t kQh = BodyField(tensor::Type::kQ5_K, 1);
  template <typename Bytes, int kWords>
  static __device__ __forceinline__ void Codes(const PackedGroup<Bytes>& at, uint32_t first,
                                               uint32_t (&codes)[kWords]) {
    LoadBits<4>(at.body + 16 * at.group, first, codes);
    AddBits<1>(at.body + kQh + 4 * at.group, first, 4, codes);
  }
  template <typename Bytes>
  static __device__ __forceinline__ GroupScales Scales(const PackedGroup<Bytes>& at) {
    return KGroupScales(at);
  }
};

template <>
struct Format<tensor::Type::kQ2_K> {
  static constexpr int kOffset = 0;
  static constexpr bool kHasMin = true, kHalves = true;
  static constexpr uint32_t kQs = BodyField(tensor::Type::kQ2_K, 1);
  template <typename Bytes, int kWords>
  static __device__ __forceinline__ void Codes(const PackedGroup<Bytes>& at, uint32_t first,
                                               uint32_t (&codes)[kWords]) {
    LoadBits<2>(at.body + kQs + 8 * (at.group % 8), first, codes);
  }
  template <typename Bytes>
  static __device__ __forceinline__ GroupScales Scales(const PackedGroup<Bytes>& at) {
    // Of both halves of 16.
    const uint32_t bits = LoadShort(at.body + 2 * (at.group % 8));
    uint32_t pair[1];  // d and dmin
    LoadWords(at.head + 4 * (at.group / 8), pair);
    const float d = HalfToFloat(pair[0] & 0xffff), dmin = HalfToFloat(pair[0] >> 16);
    return {{d * static_cast<float>(bits & 15), d * static_cast<float>((bits >> 8) & 15)},
            {dmin * static_cast<float>((bits >> 4) & 15), dmin * static_cast<float>(bits >> 12)}};
  }
};

template <>
struct Format<tensor::Type::kQ3_K> {
  static constexpr int kOffset = 4;
  static constexpr bool kHasMin = false, kHalves = true;
  static constexpr uint32_t kHmask = BodyField(tensor::Type::kQ3_K, 1);
  template <typename Bytes, int kWords>
  static __device__ __forceinline__ void Codes(const PackedGroup<Bytes>& at, uint32_t first,
                                               uint32_t (&codes)[kWords]) {
    LoadBits<2>(at.body + 8 * at.group, first, codes);
    AddBits<1>(at.body + kHmask + 4 * at.group, first, 2, codes);
  }
  template <typename Bytes>
  static __device__ __forceinline__ GroupScales Scales(const PackedGroup<Bytes>& at) {
    const uint32_t group = at.group;
    const float d = HalfToFloat(LoadShort(at.head + 12));
    // Low 4 and upper 2 bits of both halves of 16, one value per byte.
    const uint32_t low = LoadShort(at.head + group % 4 * 2) >> group / 4 * 4;
    const uint32_t high = LoadShort(at.head + 8 + group % 2 * 2) >> group / 2 * 2;
    const uint32_t both = (low & 0x0f0f) | (high & 0x0303) << 4;
    return {{d * static_cast<float>(static_cast<int>(both & 63) - 32),
             d * static_cast<float>(static_cast<int>(both >> 8) - 32)},
            {0, 0}};
  }
};

template <>
struct Format<tensor::Type::kQ6_K> {
  static constexpr int kOffset = 32;
  static constexpr bool kHasMin = false, kHalves = true;
  static constexpr uint32_t kQh = BodyField(tensor::Type::kQ6_K, 1);
  static constexpr uint32_t kScales = BodyField(tensor::Type::kQ6_K, 2);
  template <typename Bytes, int kWords>
  static __device__ __forceinline__ void Codes(const PackedGroup<Bytes>& at, uint32_t first,
                                               uint32_t (&codes)[kWords]) {
    const uint32_t group = at.group % 8;
    LoadBits<4>(at.body + 16 * group, first, codes);
    AddBits<2>(at.body + kQh + 8 * group, first, 4, codes);
  }
  template <typename Bytes>
  static __device__ __forceinline__ GroupScales Scales(const PackedGroup<Bytes>& at) {
    const float d = HalfToFloat(LoadShort(at.head + 2 * (at.group / 8)));
    const uint32_t both = LoadShort(at.body + kScales + 2 * (at.group % 8));
    return {{d * static_cast<float>(static_cast<int8_t>(both & 0xff)),
             d * static_cast<float>(static_cast<int8_t>(both >> 8))},
            {0, 0}};
  }
};

}  // namespace tandem::kernels::cuda

#endif  // TANDEM_KERNELS_CUDA_DEVICE_BLOCKS_OF_256_H_
