// Norms whose rows a product reads as int8 groups or in BF16: the kernel that computes a row rounds
// it, and does not write it where nothing else reads it.
#ifndef TANDEM_KERNELS_CUDA_NORM_NORM_H_
#define TANDEM_KERNELS_CUDA_NORM_NORM_H_

#include <cstdint>

#include "kernels/cuda/device/int8_group.h"
#include "kernels/cuda/rows/bf16_rows.h"
#include "kernels/cuda/stream.h"
#include "kernels/ops.h"

namespace tandem::kernels::cuda {

inline constexpr uint32_t kMaxNormOfWarp = 512;  // longer rows take a block
inline constexpr uint32_t kMaxNormInRegisters = 16384;

// Whether rows stay in registers, from where they can be rounded to bytes.
constexpr bool NormInRegisters(uint32_t dim) { return dim % 4 == 0 && dim <= kMaxNormInRegisters; }

// The forms in which a norm's rows are also written, if they are there. A single row in registers
// can be written as groups, whose first value is its first one.
struct RoundedRows {
  Int8Group* bytes = nullptr;
  Bf16Rows bf16;
};

// As EncodeOp, but params.out may be null: it is not written then.
void EncodeNorm(Stream& stream, const RmsNormParams& params, const RoundedRows& rounded);
void EncodeNorm(Stream& stream, const LayerNormParams& params, const RoundedRows& rounded);

}  // namespace tandem::kernels::cuda

#endif  // TANDEM_KERNELS_CUDA_NORM_NORM_H_
