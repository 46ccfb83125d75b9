// GGUF's blocks of 256 values that are entries of the grid of IQ1 on a GPU, each run of eight with
// an eighth more or less. Required members of a format: see blocks.h. Fields:
// common/tensor/blocks_of_grids.h; where they lie: packs.h.
//
// Codes count eighths: an entry's bytes and one more, or one less.
#ifndef TANDEM_KERNELS_CUDA_DEVICE_BLOCKS_OF_EIGHTHS_H_
#define TANDEM_KERNELS_CUDA_DEVICE_BLOCKS_OF_EIGHTHS_H_

#include <cuda_runtime.h>

#include <cstdint>

#include "common/tensor/blocks_of_grids.h"
#include "common/tensor/type.h"
#include "kernels/cuda/device/block_words.h"
#include "kernels/cuda/device/blocks_of_32.h"
#include "kernels/cuda/device/blocks_of_grids.h"
#include "kernels/cuda/device/grids.h"
#include "kernels/cuda/device/numbers.h"
#include "kernels/cuda/device/packs.h"

namespace tandem::kernels::cuda {

// Behind the low 8 bits of a group's four indices: 16 bits of each group.
inline constexpr uint32_t kIq1Qh = 32;

// The format of a Block; all have one grid. Fields(at): those of a group, with Index(run),
// Minus(run): 1 if an eighth is subtracted, and Scales(at).
template <typename Block, typename Fields>
struct EighthsFormat {
  static constexpr int kOffset = tensor::kIq1Offset;
  static constexpr bool kHasMin = false, kHalves = Block::kGroupValues == 16;
  template <typename Bytes, int kWords>
  static __device__ __forceinline__ void Codes(const PackedGroup<Bytes>& at, uint32_t first,
                                               uint32_t (&codes)[kWords]) {
    const Fields fields(at);
    const auto index = [&](uint32_t run) { return fields.Index(run); };
    LoadEntries(kDeviceGrid<tensor::BlockIQ1_S>, first, index, codes);
#pragma unroll
    for (uint32_t i = 0; i < kWords; ++i)
      codes[i] += 0x01010101u - fields.Minus((first + i) / 2) * 0x02020202u;
  }
  template <typename Bytes>
  static __device__ __forceinline__ GroupScales Scales(const PackedGroup<Bytes>& at) {
    return Fields(at).Scales(at);
  }
};

struct Iq1SFields {
  template <typename Bytes>
  __device__ __forceinline__ explicit Iq1SFields(const PackedGroup<Bytes>& at) {
    LoadWords(at.body + 4 * (at.group % 8), qs);
    qh = LoadShort(at.body + kIq1Qh + 2 * (at.group % 8));
  }
  __device__ __forceinline__ uint32_t Index(uint32_t run) const {
    return (qs[0] >> 8 * run & 255) | (qh >> 3 * run & 7) << 8;
  }
  __device__ __forceinline__ uint32_t Minus(uint32_t) const { return qh >> 15; }
  template <typename Bytes>
  __device__ __forceinline__ GroupScales Scales(const PackedGroup<Bytes>& at) const {
    return OneScale(OddScale(UnitOf<tensor::BlockIQ1_S>(at), qh >> 12 & 7));
  }

  uint32_t qs[1], qh;
};
template <>
struct Format<tensor::Type::kIQ1_S> : EighthsFormat<tensor::BlockIQ1_S, Iq1SFields> {};

struct Iq1MFields {
  template <typename Bytes>
  __device__ __forceinline__ explicit Iq1MFields(const PackedGroup<Bytes>& at) {
    LoadWords(at.body + 4 * (at.group % 8), qs);
    qh = LoadShort(at.body + kIq1Qh + 2 * (at.group % 8));
  }
  __device__ __forceinline__ uint32_t Index(uint32_t run) const {
    return (qs[0] >> 8 * run & 255) | (qh >> 4 * run & 7) << 8;
  }
  __device__ __forceinline__ uint32_t Minus(uint32_t run) const { return qh >> (4 * run + 3) & 1; }
  // The head has four words of 16 bits per block: scales of two groups in 12 of them, and above
  // them four bits of the half.
  template <typename Bytes>
  __device__ __forceinline__ GroupScales Scales(const PackedGroup<Bytes>& at) const {
    uint32_t words[2];
    LoadWords(at.head + 8 * (at.group / 8), words);
    const uint32_t low = words[0] & 0xf000f000u, high = words[1] & 0xf000f000u;
    const uint32_t half = low >> 12 | low >> 24 | high >> 4 | high >> 16;
    const float d = tensor::BlockIQ1_M::kUnit * HalfToFloat(half & 0xffff);
    const uint32_t group = at.group % 8;
    const uint32_t both = (group < 4 ? words[0] : words[1]) >> (group / 2 % 2 * 16 + group % 2 * 6);
    return {{OddScale(d, both & 7), OddScale(d, both >> 3 & 7)}, {0, 0}};
  }

  uint32_t qs[1], qh;
};
template <>
struct Format<tensor::Type::kIQ1_M> : EighthsFormat<tensor::BlockIQ1_M, Iq1MFields> {};

}  // namespace tandem::kernels::cuda

#endif  // TANDEM_KERNELS_CUDA_DEVICE_BLOCKS_OF_EIGHTHS_H_
