// Random weights and pages for benchmarks: values around 0 whose products neither grow nor vanish
// from layer to layer.
#ifndef TANDEM_TESTS_KERNELS_CUDA_TABLE_RANDOM_ROWS_H_
#define TANDEM_TESTS_KERNELS_CUDA_TABLE_RANDOM_ROWS_H_

#include <cstddef>
#include <cstdint>
#include <random>
#include <span>

#include "common/tensor/type.h"

namespace tandem::kernels {

// The rows from here on repeat the first ones: no cache notices, and making them costs little.
inline constexpr size_t kDifferentRows = 61;

// Fills `rows` with rows of `cols` values of a standard deviation of about 1 / sqrt(cols).
// REQUIRES: `type` is F32, F16, BF16, Q8_0, Q4_K or Q6_K.
void FillRandomRows(std::minstd_rand& random, tensor::Type type, uint32_t cols,
                    std::span<std::byte> rows);

}  // namespace tandem::kernels

#endif  // TANDEM_TESTS_KERNELS_CUDA_TABLE_RANDOM_ROWS_H_
