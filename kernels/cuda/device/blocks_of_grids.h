// GGUF's blocks of 256 values that are entries of grids, with signs (IQ2 and IQ3), on a GPU.
// Required members of a format: see blocks.h. Fields: common/tensor/blocks_of_grids.h; where they
// lie: packs.h.
//
// A group's fields are words, from which what an entry needs is extracted by shifts.
#ifndef TANDEM_KERNELS_CUDA_DEVICE_BLOCKS_OF_GRIDS_H_
#define TANDEM_KERNELS_CUDA_DEVICE_BLOCKS_OF_GRIDS_H_

#include <cuda_runtime.h>

#include <cstdint>

#include "common/tensor/blocks_of_grids.h"
#include "common/tensor/type.h"
#include "kernels/cuda/device/block_words.h"
#include "kernels/cuda/device/blocks_of_32.h"
#include "kernels/cuda/device/grids.h"
#include "kernels/cuda/device/numbers.h"
#include "kernels/cuda/device/packs.h"

namespace tandem::kernels::cuda {

// Scales of grids are odd numbers, stored without the lowest bit.
__device__ __forceinline__ float OddScale(float d, uint32_t bits) {
  return d * static_cast<float>(2 * bits + 1);
}
// Of both halves of 16, from a byte.
__device__ __forceinline__ GroupScales OddScales(float d, uint32_t both) {
  return {{OddScale(d, both & 15), OddScale(d, both >> 4)}, {0, 0}};
}
// The half of the group's block, the first field of the head, times the unit of the scales.
template <typename Block, typename Bytes>
__device__ __forceinline__ float UnitOf(const PackedGroup<Bytes>& at) {
  constexpr float kUnit = Block::kUnit;
  return kUnit * HalfToFloat(LoadShort(at.head + 2 * (at.group / 8)));
}

// The format of a Block whose entries are magnitudes. Fields(at): those of a group, with
// Index(run), Signs(eight), in its low bits, and Scales(at).
template <typename Block, typename Fields>
struct SignedGridFormat {
  static constexpr int kOffset = 0;
  static constexpr bool kHasMin = false, kHalves = Block::kGroupValues == 16;
  template <typename Bytes, int kWords>
  static __device__ __forceinline__ void Codes(const PackedGroup<Bytes>& at, uint32_t first,
                                               uint32_t (&codes)[kWords]) {
    const Fields fields(at);
    const auto index = [&](uint32_t run) { return fields.Index(run); };
    LoadEntries(kDeviceGrid<Block>, first, index, codes);
#pragma unroll
    for (uint32_t i = 0; i < kWords; ++i) {
      const uint32_t word = first + i;
      codes[i] = NegateBytes(codes[i], fields.Signs(word / 2) >> word % 2 * 4);
    }
  }
  template <typename Bytes>
  static __device__ __forceinline__ GroupScales Scales(const PackedGroup<Bytes>& at) {
    return Fields(at).Scales(at);
  }
};

struct Iq2XxsFields {
  template <typename Bytes>
  __device__ __forceinline__ explicit Iq2XxsFields(const PackedGroup<Bytes>& at) {
    LoadWords(at.body + 8 * (at.group % 8), words);
  }
  __device__ __forceinline__ uint32_t Index(uint32_t run) const {
    return words[0] >> 8 * run & 255;
  }
  __device__ __forceinline__ uint32_t Signs(uint32_t eight) const {
    return AddEighthSign(words[1] >> 7 * eight & 127);
  }
  template <typename Bytes>
  __device__ __forceinline__ GroupScales Scales(const PackedGroup<Bytes>& at) const {
    return OneScale(OddScale(UnitOf<tensor::BlockIQ2_XXS>(at), words[1] >> 28));
  }

  uint32_t words[2];  // indices; signs and scale
};
template <>
struct Format<tensor::Type::kIQ2_XXS> : SignedGridFormat<tensor::BlockIQ2_XXS, Iq2XxsFields> {};

struct Iq2XsFields {
  static constexpr uint32_t kScales = PackOf(tensor::Type::kIQ2_XS).head[1].at;
  template <typename Bytes>
  __device__ __forceinline__ explicit Iq2XsFields(const PackedGroup<Bytes>& at) {
    LoadWords(at.body + 8 * (at.group % 8), words);
  }
  __device__ __forceinline__ uint32_t Index(uint32_t run) const { return Run(run) & 511; }
  __device__ __forceinline__ uint32_t Signs(uint32_t eight) const {
    return AddEighthSign(Run(eight) >> 9 & 127);
  }
  template <typename Bytes>
  __device__ __forceinline__ GroupScales Scales(const PackedGroup<Bytes>& at) const {
    return OddScales(UnitOf<tensor::BlockIQ2_XS>(at), LoadByte(at.head + kScales + at.group));
  }
  __device__ __forceinline__ uint32_t Run(uint32_t run) const {
    return (run < 2 ? words[0] : words[1]) >> run % 2 * 16;
  }

  uint32_t words[2];  // a run per 16 bits
};
template <>
struct Format<tensor::Type::kIQ2_XS> : SignedGridFormat<tensor::BlockIQ2_XS, Iq2XsFields> {};

struct Iq2SFields {
  // Behind `qs`: signs of 8 groups, then a byte per group of qh, and of scales.
  static constexpr uint32_t kSigns = 32, kQh = 64, kScales = 72;
  template <typename Bytes>
  __device__ __forceinline__ explicit Iq2SFields(const PackedGroup<Bytes>& at) {
    LoadWords(at.body + 4 * (at.group % 8), qs);
    LoadWords(at.body + kSigns + 4 * (at.group % 8), signs);
    qh = LoadByte(at.body + kQh + at.group % 8);
  }
  __device__ __forceinline__ uint32_t Index(uint32_t run) const {
    return (qs[0] >> 8 * run & 255) | (qh >> 2 * run & 3) << 8;
  }
  __device__ __forceinline__ uint32_t Signs(uint32_t eight) const { return signs[0] >> 8 * eight; }
  template <typename Bytes>
  __device__ __forceinline__ GroupScales Scales(const PackedGroup<Bytes>& at) const {
    return OddScales(UnitOf<tensor::BlockIQ2_S>(at), LoadByte(at.body + kScales + at.group % 8));
  }

  uint32_t qs[1], signs[1], qh;
};
template <>
struct Format<tensor::Type::kIQ2_S> : SignedGridFormat<tensor::BlockIQ2_S, Iq2SFields> {};

struct Iq3XxsFields {
  static constexpr uint32_t kTails = 64;  // behind `qs`
  template <typename Bytes>
  __device__ __forceinline__ explicit Iq3XxsFields(const PackedGroup<Bytes>& at) {
    LoadWords(at.body + 8 * (at.group % 8), qs);
    LoadWords(at.body + kTails + 4 * (at.group % 8), tail);
  }
  __device__ __forceinline__ uint32_t Index(uint32_t run) const {
    return (run < 4 ? qs[0] : qs[1]) >> run % 4 * 8 & 255;
  }
  __device__ __forceinline__ uint32_t Signs(uint32_t eight) const {
    return AddEighthSign(tail[0] >> 7 * eight & 127);
  }
  template <typename Bytes>
  __device__ __forceinline__ GroupScales Scales(const PackedGroup<Bytes>& at) const {
    return OneScale(OddScale(UnitOf<tensor::BlockIQ3_XXS>(at), tail[0] >> 28));
  }

  uint32_t qs[2], tail[1];
};
template <>
struct Format<tensor::Type::kIQ3_XXS> : SignedGridFormat<tensor::BlockIQ3_XXS, Iq3XxsFields> {};

struct Iq3SFields {
  static constexpr PackLayout kPack = PackOf(tensor::Type::kIQ3_S);
  static constexpr uint32_t kQh = kPack.head[1].at, kScales = kPack.head[2].at;
  static constexpr uint32_t kSigns = kPack.body[1].at;
  template <typename Bytes>
  __device__ __forceinline__ explicit Iq3SFields(const PackedGroup<Bytes>& at) {
    LoadWords(at.body + 8 * (at.group % 8), qs);
    LoadWords(at.body + kSigns + 4 * (at.group % 8), signs);
    qh = LoadByte(at.head + kQh + at.group);
  }
  __device__ __forceinline__ uint32_t Index(uint32_t run) const {
    return ((run < 4 ? qs[0] : qs[1]) >> run % 4 * 8 & 255) | (qh >> run & 1) << 8;
  }
  __device__ __forceinline__ uint32_t Signs(uint32_t eight) const { return signs[0] >> 8 * eight; }
  template <typename Bytes>
  __device__ __forceinline__ GroupScales Scales(const PackedGroup<Bytes>& at) const {
    const uint32_t two = LoadByte(at.head + kScales + at.group / 2);
    return OneScale(OddScale(UnitOf<tensor::BlockIQ3_S>(at), two >> at.group % 2 * 4 & 15));
  }

  uint32_t qs[2], signs[1], qh;
};
template <>
struct Format<tensor::Type::kIQ3_S> : SignedGridFormat<tensor::BlockIQ3_S, Iq3SFields> {};

}  // namespace tandem::kernels::cuda

#endif  // TANDEM_KERNELS_CUDA_DEVICE_BLOCKS_OF_GRIDS_H_
