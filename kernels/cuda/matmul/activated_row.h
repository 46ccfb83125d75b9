// The activated rows of gate and up. Device code.
#ifndef TANDEM_KERNELS_CUDA_MATMUL_ACTIVATED_ROW_H_
#define TANDEM_KERNELS_CUDA_MATMUL_ACTIVATED_ROW_H_

#include <cuda_runtime.h>

#include <cstdint>

#include "kernels/cuda/matmul/gate_up_tasks.h"
#include "kernels/cuda/matmul/store_sum.h"
#include "kernels/cuda/rows/activation.h"

namespace tandem::kernels::cuda {

// The value of a row of the weights, from its sums; of rows beyond the end, which are columns that
// the next product does not have, 0.
__device__ __forceinline__ float ActivatedValue(const GateAndUp& of, uint32_t row, float gate,
                                                float up) {
  if (row >= of.gate.rows) return 0.0f;
  return Activated(of.function, WithBias(of.gate, row, gate), WithBias(of.up, row, up));
}

}  // namespace tandem::kernels::cuda

#endif  // TANDEM_KERNELS_CUDA_MATMUL_ACTIVATED_ROW_H_
