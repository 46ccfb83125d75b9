// Pages of 16-bit values for the tensor cores; queries and weights are rounded to the same type.
#ifndef TANDEM_KERNELS_CUDA_ATTENTION_PAGE16_H_
#define TANDEM_KERNELS_CUDA_ATTENTION_PAGE16_H_

#include "kernels/cuda/attention/kv_tiles.h"
#include "kernels/cuda/device/mma.h"
#include "kernels/cuda/device/numbers.h"

namespace tandem::kernels::cuda {

// BF16 if true, else F16.
template <bool kBf16>
struct Page16 {
  static constexpr uint32_t kChunkValues = 8;
  template <uint32_t kPositions, uint32_t kThreads, uint32_t kMostChunks>
  using Tiles = KvTiles<Page16, kPositions, kThreads, kMostChunks>;

  // Values [8 chunk, 8 chunk + 8) of a row of dim, zero-padded.
  __device__ static uint4 Chunk(const std::byte* row, uint32_t chunk, uint32_t dim) {
    return Chunk16(row, chunk, dim);
  }
  __device__ static uint16_t Round(float value) {
    return kBf16 ? FloatToBf16(value) : FloatToHalf(value);
  }
  __device__ static void Mma(float (&c)[4], const uint32_t (&a)[4], const uint32_t (&b)[2]) {
    if constexpr (kBf16) {
      MmaBf16(c, a, b);
    } else {
      MmaF16(c, a, b);
    }
  }
};

}  // namespace tandem::kernels::cuda

#endif  // TANDEM_KERNELS_CUDA_ATTENTION_PAGE16_H_
