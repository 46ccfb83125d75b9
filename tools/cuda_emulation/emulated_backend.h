// The CUDA backend under emulation: the same host code and the same kernels, on this machine's CPU.
// Ranks reduce by the emulated NCCL.
#ifndef TANDEM_TOOLS_CUDA_EMULATION_EMULATED_BACKEND_H_
#define TANDEM_TOOLS_CUDA_EMULATION_EMULATED_BACKEND_H_

#include <memory>

#include "absl/status/statusor.h"
#include "kernels/backend.h"

namespace tandem::kernels::cuda {

absl::StatusOr<std::unique_ptr<Backend>> MakeEmulatedBackend();

}  // namespace tandem::kernels::cuda

#endif  // TANDEM_TOOLS_CUDA_EMULATION_EMULATED_BACKEND_H_
