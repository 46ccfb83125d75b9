// Device and page-locked host memory as Buffers, freed on destruction.
#ifndef TANDEM_KERNELS_CUDA_MEMORY_H_
#define TANDEM_KERNELS_CUDA_MEMORY_H_

#include <cstddef>

#include "absl/status/statusor.h"
#include "kernels/backend.h"

namespace tandem::kernels::cuda {

// Not zeroed, 256-byte aligned, on the current device. RESOURCE_EXHAUSTED with the requested and
// the free bytes.
absl::StatusOr<Buffer> AllocateDevice(size_t bytes);
// Zeroed and page-locked.
absl::StatusOr<Buffer> AllocatePinned(size_t bytes);

}  // namespace tandem::kernels::cuda

#endif  // TANDEM_KERNELS_CUDA_MEMORY_H_
