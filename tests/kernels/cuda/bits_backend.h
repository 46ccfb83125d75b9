// For runs that are compared with each other, of any suite:
//   TANDEM_TEST_BITS  prints a line per test, `bits NAME HASH`: of all that the test downloaded
//   TANDEM_TEST_HOG   keeps multiprocessors busy from a second stream meanwhile, so that blocks run
//                     in another order
// Linking it is enough for the hog; backends come from MakeBitsBackend.
#ifndef TANDEM_TESTS_KERNELS_CUDA_BITS_BACKEND_H_
#define TANDEM_TESTS_KERNELS_CUDA_BITS_BACKEND_H_

#include <memory>

#include "absl/status/statusor.h"
#include "kernels/backend.h"

namespace tandem::kernels::cuda {

// Whether the environment asks for bits.
bool BitsWanted();
// On the current device.
absl::StatusOr<std::unique_ptr<Backend>> MakeBitsBackend();

}  // namespace tandem::kernels::cuda

#endif  // TANDEM_TESTS_KERNELS_CUDA_BITS_BACKEND_H_
