// Measured peak rates of the current device, against which op times are compared.
#ifndef TANDEM_TESTS_KERNELS_CUDA_TABLE_CEILINGS_H_
#define TANDEM_TESTS_KERNELS_CUDA_TABLE_CEILINGS_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "absl/status/statusor.h"

namespace tandem::kernels::cuda {

struct Ceilings {
  double read_bytes_per_s = 0;  // reading alone, as a decode step does
  double copy_bytes_per_s = 0;  // device-to-device copy, bytes read plus bytes written
  double flops_per_s = 0;       // dense BF16 GEMM of random values, float accumulators

  // What no op exceeds.
  double bytes_per_s() const { return std::max(read_bytes_per_s, copy_bytes_per_s); }
};

// Reads and copies `bytes`; multiplies square matrices of `matrix` rows. Medians of several warm
// runs.
absl::StatusOr<Ceilings> MeasureCeilings(size_t bytes, uint32_t matrix);

}  // namespace tandem::kernels::cuda

#endif  // TANDEM_TESTS_KERNELS_CUDA_TABLE_CEILINGS_H_
