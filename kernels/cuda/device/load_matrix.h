// Fragments for the tensor cores out of shared memory (ldmatrix): a warp reads four matrices of 8 x
// 8 16-bit values at once, and each lane gets its part of each in the layout of device/mma.h.
//
// Lane i passes the element of `from` at which row i % 8 of matrix i / 8 begins; rows begin at
// multiples of 16 bytes. With group = lane / 4 and pair = lane % 4, lane then holds of matrix m
//   plain:      r[m] = M[group][2 pair, +1]
//   transposed: r[m] = M[2 pair, +1][group]
// the lower index in the low half (PTX ISA, "ldmatrix"). All lanes call it together, with the same
// `from`.
#ifndef TANDEM_KERNELS_CUDA_DEVICE_LOAD_MATRIX_H_
#define TANDEM_KERNELS_CUDA_DEVICE_LOAD_MATRIX_H_

#include <cuda_runtime.h>

#include <cstdint>

#include "kernels/cuda/device/numbers.h"
#include "kernels/cuda/device/shared_array.h"

namespace tandem::kernels::cuda {

#ifdef TANDEM_CUDA_EMULATION

inline void LoadMatrices(uint32_t (&r)[4], SharedArray<uint16_t> from, uint32_t row_begin) {
  if (from.OffsetOf(row_begin) % 16 != 0) {
    emulation::Fail("misaligned access: a matrix row that is not 16-byte aligned");
  }
  const auto begins = emulation::ExchangeInWarp(row_begin);
  const uint32_t lane = emulation::Lane();
  for (uint32_t m = 0; m < 4; ++m) {
    const auto at = static_cast<uint32_t>(begins[m * 8 + lane / 4]) + lane % 4 * 2;
    r[m] = Pack(from[at], from[at + 1]);
  }
}
inline void LoadMatricesTransposed(uint32_t (&r)[4], SharedArray<uint16_t> from,
                                   uint32_t row_begin) {
  if (from.OffsetOf(row_begin) % 16 != 0) {
    emulation::Fail("misaligned access: a matrix row that is not 16-byte aligned");
  }
  const auto begins = emulation::ExchangeInWarp(row_begin);
  const uint32_t lane = emulation::Lane();
  for (uint32_t m = 0; m < 4; ++m) {
    const uint64_t* const rows = &begins[m * 8 + lane % 4 * 2];
    r[m] = Pack(from[static_cast<uint32_t>(rows[0]) + lane / 4],
                from[static_cast<uint32_t>(rows[1]) + lane / 4]);
  }
}

#else

__device__ inline void LoadMatrices(uint32_t (&r)[4], SharedArray<uint16_t> from,
                                    uint32_t row_begin) {
  const auto address = static_cast<uint32_t>(__cvta_generic_to_shared(&from[row_begin]));
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];"
               : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
               : "r"(address));
}
__device__ inline void LoadMatricesTransposed(uint32_t (&r)[4], SharedArray<uint16_t> from,
                                              uint32_t row_begin) {
  const auto address = static_cast<uint32_t>(__cvta_generic_to_shared(&from[row_begin]));
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0,%1,%2,%3}, [%4];"
               : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
               : "r"(address));
}

#endif

}  // namespace tandem::kernels::cuda

#endif  // TANDEM_KERNELS_CUDA_DEVICE_LOAD_MATRIX_H_
