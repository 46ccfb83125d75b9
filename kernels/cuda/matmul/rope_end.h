// What a launch of Q, K and V does besides, so that RopeWriteKv need not follow: it rotates q and k
// and writes K and V to their pages. Its parts are q, k and v.
#ifndef TANDEM_KERNELS_CUDA_MATMUL_ROPE_END_H_
#define TANDEM_KERNELS_CUDA_MATMUL_ROPE_END_H_

#include <cstdint>

#include "kernels/ops.h"

namespace tandem::kernels::cuda {

// Rows that a warp of the GEMV has at a time: a unit (rope_units.h).
inline constexpr uint32_t kMatVecUnit = 4;

struct RopeEnd {
  bool on = false;  // if not, sums are stored as they are
  RopeWriteKvParams write = {};
};

}  // namespace tandem::kernels::cuda

#endif  // TANDEM_KERNELS_CUDA_MATMUL_ROPE_END_H_
