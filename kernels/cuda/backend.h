// MakeCudaBackend: the backend for one GPU of this process; checks that it exists and is new
// enough.
#ifndef TANDEM_KERNELS_CUDA_BACKEND_H_
#define TANDEM_KERNELS_CUDA_BACKEND_H_

#include <memory>

#include "absl/status/statusor.h"
#include "kernels/backend.h"

namespace tandem::kernels::cuda {

// `device_index` counts the devices visible to the process (CUDA_VISIBLE_DEVICES). Only the calling
// thread may use the backend. UNAVAILABLE, in one line: no driver, no device, no device of that
// index, or a device that is too old.
absl::StatusOr<std::unique_ptr<Backend>> MakeCudaBackend(int device_index);

}  // namespace tandem::kernels::cuda

#endif  // TANDEM_KERNELS_CUDA_BACKEND_H_
