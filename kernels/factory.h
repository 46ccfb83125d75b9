// Makes the backend that a configuration asks for.
#ifndef TANDEM_KERNELS_FACTORY_H_
#define TANDEM_KERNELS_FACTORY_H_

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "kernels/backend.h"

namespace tandem::kernels {

struct BackendOptions {
  std::string device = "cpu";        // "cpu"; "cuda" is refused in one line until it exists
  std::string cpu_kernels = "auto";  // auto|reference|avx2|avx512
  int threads = 1;                   // per worker, the driving thread included
  bool operator==(const BackendOptions&) const = default;
};

// INVALID_ARGUMENT for an unknown name or thread count; UNIMPLEMENTED for cuda; FAILED_PRECONDITION
// where this machine lacks the instructions, naming them. "auto" takes the widest that this machine
// can run.
absl::StatusOr<std::unique_ptr<Backend>> MakeBackend(const BackendOptions& options);

}  // namespace tandem::kernels

#endif  // TANDEM_KERNELS_FACTORY_H_
