// StagedBytes: a place within packs that were copied to shared memory. Formats (blocks.h) read it
// as they read a pointer to global memory.
#ifndef TANDEM_KERNELS_CUDA_DEVICE_STAGED_BYTES_H_
#define TANDEM_KERNELS_CUDA_DEVICE_STAGED_BYTES_H_

#include <cuda_runtime.h>

#include <cstdint>

#include "kernels/cuda/device/shared_array.h"

namespace tandem::kernels::cuda {

struct StagedBytes {
  SharedArray<uint32_t> words;
  uint32_t at;  // bytes from the first word

  __device__ __forceinline__ StagedBytes operator+(uint32_t bytes) const {
    return {words, at + bytes};
  }
};

// As LoadWords of a pointer (block_words.h).
template <int kWords>
__device__ __forceinline__ void LoadWords(StagedBytes data, uint32_t (&words)[kWords]) {
  if constexpr (kWords % 4 == 0) {
    const SharedArray<uint4> from = data.words.As<uint4>();
#pragma unroll
    for (uint32_t i = 0; i < kWords / 4; ++i) {
      const uint4 four = from[data.at / 16 + i];
      words[4 * i] = four.x;
      words[4 * i + 1] = four.y;
      words[4 * i + 2] = four.z;
      words[4 * i + 3] = four.w;
    }
  } else if constexpr (kWords % 2 == 0) {
    const SharedArray<uint2> from = data.words.As<uint2>();
#pragma unroll
    for (uint32_t i = 0; i < kWords / 2; ++i) {
      const uint2 two = from[data.at / 8 + i];
      words[2 * i] = two.x;
      words[2 * i + 1] = two.y;
    }
  } else {
#pragma unroll
    for (uint32_t i = 0; i < kWords; ++i) words[i] = data.words[data.at / 4 + i];
  }
}

// A 16-bit number at an even place.
__device__ __forceinline__ uint32_t LoadShort(StagedBytes data) {
  return data.words.As<uint16_t>()[data.at / 2];
}
__device__ __forceinline__ uint32_t LoadByte(StagedBytes data) {
  const uint32_t both = data.words.As<uint16_t>()[data.at / 2];
  return both >> data.at % 2 * 8 & 0xff;
}

}  // namespace tandem::kernels::cuda

#endif  // TANDEM_KERNELS_CUDA_DEVICE_STAGED_BYTES_H_
