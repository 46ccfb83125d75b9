// What the present device can do at best, measured: the rates that times of ops are held against.
#ifndef TANDEM_KERNELS_CUDA_CEILINGS_H_
#define TANDEM_KERNELS_CUDA_CEILINGS_H_

#include <cstddef>
#include <cstdint>

#include "absl/status/statusor.h"

namespace tandem::kernels::cuda {

struct Ceilings {
  double bytes_per_s = 0;  // copy from device memory to device memory, read and written bytes
  double flops_per_s = 0;  // product of dense BF16 matrices of random values, sums in float
};

// Copies `copy_bytes`; multiplies square matrices of `matrix` rows. Medians of several warm runs.
absl::StatusOr<Ceilings> MeasureCeilings(size_t copy_bytes, uint32_t matrix);

}  // namespace tandem::kernels::cuda

#endif  // TANDEM_KERNELS_CUDA_CEILINGS_H_
