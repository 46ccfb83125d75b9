// Makes the backend that a configuration asks for.
#ifndef TANDEM_KERNELS_FACTORY_H_
#define TANDEM_KERNELS_FACTORY_H_

#include <functional>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "kernels/backend.h"

namespace tandem::kernels {

struct BackendOptions {
  std::string device = "cpu";        // cpu|cuda
  std::string cpu_kernels = "auto";  // auto|reference|avx2|avx512
  int threads = 1;                   // per worker, the driving thread included
  int device_index = 0;              // which of the devices that this process may see
  bool operator==(const BackendOptions&) const = default;
};

// INVALID_ARGUMENT for an unknown name or thread count; UNAVAILABLE for a device that this program
// was built without, or that this machine lacks; FAILED_PRECONDITION where this machine lacks the
// instructions, naming them. "auto" takes the widest that this machine can run.
absl::StatusOr<std::unique_ptr<Backend>> MakeBackend(const BackendOptions& options);

// Makes "cuda" known: a program that links a CUDA backend calls this once, first thing in main, so
// that all others have no trace of CUDA.
using DeviceMaker =
    std::function<absl::StatusOr<std::unique_ptr<Backend>>(const BackendOptions& options)>;
void RegisterCuda(DeviceMaker maker);

}  // namespace tandem::kernels

#endif  // TANDEM_KERNELS_FACTORY_H_
