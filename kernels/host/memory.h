// Memory of backends that compute on the host.
#ifndef TANDEM_KERNELS_HOST_MEMORY_H_
#define TANDEM_KERNELS_HOST_MEMORY_H_

#include <cstddef>

#include "absl/status/statusor.h"
#include "kernels/backend.h"

namespace tandem::kernels::host {

// Zeroed private pages, page-aligned; from 2 MiB on aligned for huge pages, with madvise. Pages are
// committed on first touch. RESOURCE_EXHAUSTED with the size if the system refuses. Thread-safe.
absl::StatusOr<Buffer> AllocatePages(size_t bytes);

}  // namespace tandem::kernels::host

#endif  // TANDEM_KERNELS_HOST_MEMORY_H_
