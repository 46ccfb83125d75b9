// A kernel that reads memory and does nothing else: the ceiling of everything that reads weights.
#ifndef TANDEM_TESTS_KERNELS_CUDA_TABLE_READ_ALL_H_
#define TANDEM_TESTS_KERNELS_CUDA_TABLE_READ_ALL_H_

#include <cstddef>

#include "kernels/cuda/stream.h"

namespace tandem::kernels::cuda {

// Reads `bytes`, a multiple of 16, at `data`; `out`, an unsigned, is written only in theory.
void EncodeReadAll(Stream& stream, const void* data, size_t bytes, void* out);

}  // namespace tandem::kernels::cuda

#endif  // TANDEM_TESTS_KERNELS_CUDA_TABLE_READ_ALL_H_
