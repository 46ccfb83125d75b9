// NVFP4 on a GPU: two groups of 32 values to a block. Required members of a format: see blocks.h.
// Fields: common/tensor/blocks_of_64.h; where they lie: packs.h.
#ifndef TANDEM_KERNELS_CUDA_DEVICE_BLOCKS_OF_64_H_
#define TANDEM_KERNELS_CUDA_DEVICE_BLOCKS_OF_64_H_

#include <cuda_runtime.h>

#include <cstdint>

#include "common/tensor/type.h"
#include "kernels/cuda/device/block_words.h"
#include "kernels/cuda/device/blocks_of_32.h"
#include "kernels/cuda/device/numbers.h"
#include "kernels/cuda/device/packs.h"

namespace tandem::kernels::cuda {

template <>
struct Format<tensor::Type::kNVFP4> {
  static constexpr int kOffset = 0;
  static constexpr bool kHasMin = false, kHalves = true;
  // Two words have the codes of 16 values: the first eight in their low halves, the others in their
  // high ones.
  template <typename Bytes, int kWords>
  static __device__ __forceinline__ void Codes(const PackedGroup<Bytes>& at, uint32_t first,
                                               uint32_t (&codes)[kWords]) {
    const Bytes qs = at.body + 16 * (at.group % 2);
    if constexpr (kWords == 8) {
      uint32_t words[4];
      LoadWords(qs, words);
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        const int to = i / 2 * 4 + i % 2;
        LookUpHalves<Mxfp4Book>(words[i], codes[to], codes[to + 2]);
      }
    } else {
      static_assert(kWords <= 2);
      LoadWords(qs + 4 * (first / 4 * 2 + first % 2), codes);
#pragma unroll
      for (int i = 0; i < kWords; ++i) {
        codes[i] = LookUpBytes<Mxfp4Book>((codes[i] >> first / 2 % 2 * 4) & 0x0f0f0f0f);
      }
    }
  }
  template <typename Bytes>
  static __device__ __forceinline__ GroupScales Scales(const PackedGroup<Bytes>& at) {
    constexpr uint32_t kOfMatrix = PackOf(tensor::Type::kNVFP4).scale_at;
    uint32_t of_matrix[1];
    LoadWords(at.head + kOfMatrix, of_matrix);
    const uint32_t both = LoadShort(at.head + 2 * at.group);
    const float scale = __uint_as_float(of_matrix[0]);
    return {{HalfOfScale(both & 0x7f) * scale, HalfOfScale(both >> 8 & 0x7f) * scale}, {0, 0}};
  }

 private:
  // As BlockNVFP4::Scale: the bits are those of a half but for the bias of its exponent.
  static __device__ __forceinline__ float HalfOfScale(uint32_t byte) {
    constexpr float kHalfOfBias = 128;  // 2^(15 - 7) / 2
    return byte == 0x7f ? 0.0f : HalfToFloat(static_cast<uint16_t>(byte << 7)) * kHalfOfBias;
  }
};

}  // namespace tandem::kernels::cuda

#endif  // TANDEM_KERNELS_CUDA_DEVICE_BLOCKS_OF_64_H_
