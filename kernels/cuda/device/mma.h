// Tensor cores: D = A B + C on fragments distributed over the 32 lanes of a warp.
//
// MmaBf16 and MmaF16 have 16-bit inputs and float accumulators. A is 16 x 16 (rows m, columns k), B
// is 16 x 8 (rows k, columns n), C and D are 16 x 8. With group = lane / 4 and pair = lane % 4,
// lane holds (PTX ISA, "Matrix Fragments for mma.m16n8k16"):
//   a[0]: A[group][2 pair, +1]      a[1]: A[group + 8][2 pair, +1]
//   a[2]: A[group][2 pair + 8, +9]  a[3]: A[group + 8][2 pair + 8, +9]
//   b[0]: B[2 pair, +1][group]      b[1]: B[2 pair + 8, +9][group]
//   c[0], c[1]: C[group][2 pair, +1]    c[2], c[3]: C[group + 8][2 pair, +1]
// the lower index in the low half of a register.
//
// MmaInt8 multiplies signed bytes into integers: A is 16 x 32, B is 32 x 8 ("Matrix Fragments for
// mma.m16n8k32"):
//   a[0]: A[group][4 pair .. + 3]       a[1]: A[group + 8][4 pair .. + 3]
//   a[2]: A[group][4 pair + 16 .. + 3]  a[3]: A[group + 8][4 pair + 16 .. + 3]
//   b[0]: B[4 pair .. + 3][group]       b[1]: B[4 pair + 16 .. + 3][group]
// the lowest index in the lowest byte; C and D as above. MmaInt8Half does so with the first or the
// last 16 of those columns: a[0], a[1], b[0] or a[2], a[3], b[1] (mma.m16n8k16).
//
// All lanes call them together.
#ifndef TANDEM_KERNELS_CUDA_DEVICE_MMA_H_
#define TANDEM_KERNELS_CUDA_DEVICE_MMA_H_

#include <cuda_runtime.h>

#include <cstdint>

#ifdef TANDEM_CUDA_EMULATION
#include "tools/cuda_emulation/mma_twin.h"
#endif

namespace tandem::kernels::cuda {

#ifdef TANDEM_CUDA_EMULATION

using emulation::MmaBf16;
using emulation::MmaF16;
using emulation::MmaInt8;
using emulation::MmaInt8Half;

#else

__device__ inline void MmaBf16(float (&c)[4], const uint32_t (&a)[4], const uint32_t (&b)[2]) {
  asm volatile(
      "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 "
      "{%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
      : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}

__device__ inline void MmaF16(float (&c)[4], const uint32_t (&a)[4], const uint32_t (&b)[2]) {
  asm volatile(
      "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 "
      "{%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
      : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}

// Every value of C is `c`.
__device__ inline void MmaInt8(int (&d)[4], const uint32_t (&a)[4], const uint32_t (&b)[2], int c) {
  asm volatile(
      "mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32 "
      "{%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%10,%10,%10,%10};"
      : "=r"(d[0]), "=r"(d[1]), "=r"(d[2]), "=r"(d[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]), "r"(c));
}

__device__ inline void MmaInt8Half(int (&d)[4], uint32_t a_low, uint32_t a_high, uint32_t b,
                                   int c) {
  asm volatile(
      "mma.sync.aligned.m16n8k16.row.col.s32.s8.s8.s32 "
      "{%0,%1,%2,%3}, {%4,%5}, {%6}, {%7,%7,%7,%7};"
      : "=r"(d[0]), "=r"(d[1]), "=r"(d[2]), "=r"(d[3])
      : "r"(a_low), "r"(a_high), "r"(b), "r"(c));
}

#endif

}  // namespace tandem::kernels::cuda

#endif  // TANDEM_KERNELS_CUDA_DEVICE_MMA_H_
