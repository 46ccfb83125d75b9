// The grids of IQ1, IQ2 and IQ3 (common/tensor/grids.h) in device memory, and words of codes made
// of their entries.
#ifndef TANDEM_KERNELS_CUDA_DEVICE_GRIDS_H_
#define TANDEM_KERNELS_CUDA_DEVICE_GRIDS_H_

#include <cuda_runtime.h>

#include <cstddef>
#include <cstdint>

#include "common/tensor/grids.h"
#include "kernels/cuda/device/block_words.h"

namespace tandem::kernels::cuda {

// The grid of a Block (common/tensor/blocks_of_grids.h) in global memory: lanes read different
// entries, which constant memory would give one by one. A file of kernels has copies of those that
// it uses.
template <typename Block>
static __device__ const auto kDeviceGrid = Block::kGrid;

// Words [first, first + kWords) of entries index(0), index(1), ... one after another; first is a
// multiple of kWords.
template <size_t kEntries, size_t kValues, typename Index, int kWords>
__device__ __forceinline__ void LoadEntries(const tensor::Grid<kEntries, kValues>& grid,
                                            uint32_t first, Index index,
                                            uint32_t (&words)[kWords]) {
  constexpr uint32_t kOfEntry = kValues / 4;
  constexpr uint32_t kAtOnce = kWords < kOfEntry ? kWords : kOfEntry;
#pragma unroll
  for (uint32_t i = 0; i < kWords; i += kAtOnce) {
    const uint32_t at = kOfEntry * index((first + i) / kOfEntry) + (first + i) % kOfEntry;
    uint32_t loaded[kAtOnce];
    LoadWords(reinterpret_cast<const std::byte*>(grid.words + at), loaded);
#pragma unroll
    for (uint32_t j = 0; j < kAtOnce; ++j) words[i + j] = loaded[j];
  }
}

// Seven signs and the eighth: an even number of them are set.
__device__ __forceinline__ uint32_t AddEighthSign(uint32_t seven) {
  return seven | (static_cast<uint32_t>(__popc(seven)) & 1) << 7;
}

// Four bytes from 1 to 127, negative where bits 0 to 3 of `signs` are set: 255 - byte + 1, which is
// below 256.
__device__ __forceinline__ uint32_t NegateBytes(uint32_t bytes, uint32_t signs) {
  const uint32_t ones = SpreadBits(signs);
  return (bytes ^ ((ones << 8) - ones)) + ones;
}

}  // namespace tandem::kernels::cuda

#endif  // TANDEM_KERNELS_CUDA_DEVICE_GRIDS_H_
