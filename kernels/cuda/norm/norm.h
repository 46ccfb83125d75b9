// Norms whose rows a product reads as int8 groups: the kernel that computes a row rounds it, and
// does not write it where nothing else reads it.
#ifndef TANDEM_KERNELS_CUDA_NORM_NORM_H_
#define TANDEM_KERNELS_CUDA_NORM_NORM_H_

#include <cstdint>

#include "kernels/cuda/rows/quantize_rows.h"
#include "kernels/cuda/stream.h"
#include "kernels/ops.h"

namespace tandem::kernels::cuda {

inline constexpr uint32_t kMaxNormOfWarp = 512;  // longer rows take a block
inline constexpr uint32_t kMaxNormInRegisters = 16384;

// Whether rows stay in registers, from where they can be rounded.
constexpr bool NormInRegisters(uint32_t dim) { return dim % 4 == 0 && dim <= kMaxNormInRegisters; }

// As EncodeOp. `bytes` gets the groups of `out`, whose first value is the first one of a group, and
// `out` may be null; for rows in registers.
void EncodeNorm(Stream& stream, const RmsNormParams& params, const Int8Rows& bytes);
void EncodeNorm(Stream& stream, const LayerNormParams& params, const Int8Rows& bytes);

}  // namespace tandem::kernels::cuda

#endif  // TANDEM_KERNELS_CUDA_NORM_NORM_H_
