// MakeCudaBackend: the backend of one GPU of this process, checked for being there and new enough.
#ifndef TANDEM_KERNELS_CUDA_BACKEND_H_
#define TANDEM_KERNELS_CUDA_BACKEND_H_

#include <memory>

#include "absl/status/statusor.h"
#include "kernels/backend.h"

namespace tandem::kernels::cuda {

// On device `device_index` of those that the process may see (CUDA_VISIBLE_DEVICES). The
// calling thread is the one that drives it. UNAVAILABLE in one line: no driver, no device, no
// device of that index, or one that is too old.
absl::StatusOr<std::unique_ptr<Backend>> MakeCudaBackend(int device_index);

}  // namespace tandem::kernels::cuda

#endif  // TANDEM_KERNELS_CUDA_BACKEND_H_
