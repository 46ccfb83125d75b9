// Which rows of a weight a launch with a RopeEnd multiplies together.
//
// The rows of a weight are multiplied in units of kRows, and a unit has both dims of every pair:
// neighbours, or with `halves` those of its upper half with those of its lower, which are
// rotary_dims / 2 rows further on. So a unit has rows of two places then.
#ifndef TANDEM_KERNELS_CUDA_MATMUL_ROPE_UNITS_H_
#define TANDEM_KERNELS_CUDA_MATMUL_ROPE_UNITS_H_

#include <cuda_runtime.h>

#include <cstdint>

#include "kernels/cuda/matmul/rope_end.h"

namespace tandem::kernels::cuda {

// The parts of a launch with a RopeEnd.
inline constexpr uint32_t kQueryPart = 0, kValuePart = 2;

// kRows: a power of two. With `halves` head_dim and rotary_dims are multiples of it, else even.
template <uint32_t kRows>
class RopeUnits {
 public:
  __device__ __forceinline__ RopeUnits(const RopeEnd& end, uint32_t part)
      : in_halves_(end.on && end.write.halves && part != kValuePart), p_(end.write) {}

  // Row i of a unit; it may be beyond the last.
  __device__ __forceinline__ uint32_t Row(uint32_t unit, uint32_t i) const {
    const uint32_t first = unit * kRows;
    if (!in_halves_) return first + i;
    const uint32_t dim = first % p_.pages.head_dim;
    if (dim >= p_.rotary_dims) return first + i;
    return first - dim / 2 + i % (kRows / 2) + i / (kRows / 2) * (p_.rotary_dims / 2);
  }

  // Rows FirstOfPair(pair) of a unit, pair < kRows / 2, and the one so far behind are a pair.
  __device__ __forceinline__ uint32_t Distance() const { return p_.halves ? kRows / 2 : 1; }
  __device__ __forceinline__ uint32_t FirstOfPair(uint32_t pair) const {
    return 2 * pair - pair % Distance();
  }

 private:
  const bool in_halves_;
  const RopeWriteKvParams& p_;
};

}  // namespace tandem::kernels::cuda

#endif  // TANDEM_KERNELS_CUDA_MATMUL_ROPE_UNITS_H_
