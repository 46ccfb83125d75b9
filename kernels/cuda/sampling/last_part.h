// Which of the blocks that share a row is the last to finish: it sees what the others wrote.
#ifndef TANDEM_KERNELS_CUDA_SAMPLING_LAST_PART_H_
#define TANDEM_KERNELS_CUDA_SAMPLING_LAST_PART_H_

#include <cuda_runtime.h>

#include <cstdint>

#include "kernels/cuda/device/shared_array.h"

namespace tandem::kernels::cuda {

// Whether `parts` - 1 blocks have called this before for the same counter, which began at 0. If
// so, the block sees what they wrote to memory. All threads of a block call it and get the result;
// `room` has one value.
__device__ inline bool IsLastPart(uint32_t& arrived, uint32_t parts, SharedArray<uint32_t> room) {
  __threadfence();  // this thread's writes come before the count
  __syncthreads();
  if (threadIdx.x == 0) room[0] = atomicAdd(&arrived, 1u);
  __syncthreads();
  __threadfence();  // and the count before what is read from now on
  return room[0] == parts - 1;
}

}  // namespace tandem::kernels::cuda

#endif  // TANDEM_KERNELS_CUDA_SAMPLING_LAST_PART_H_
