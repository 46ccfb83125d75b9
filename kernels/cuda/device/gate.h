// The factor of gated additions to rows: AddRows, and products that add to rows as they store.
#ifndef TANDEM_KERNELS_CUDA_DEVICE_GATE_H_
#define TANDEM_KERNELS_CUDA_DEVICE_GATE_H_

#include <cuda_runtime.h>

#include <cstddef>
#include <cstdint>

namespace tandem::kernels::cuda {

// sigmoid(gate[row]); 1 without a gate.
__device__ inline float GateFactor(const float* gate, uint32_t row) {
  return gate != nullptr ? 1.0f / __fadd_rn(1.0f, expf(-gate[row])) : 1.0f;
}

}  // namespace tandem::kernels::cuda

#endif  // TANDEM_KERNELS_CUDA_DEVICE_GATE_H_
