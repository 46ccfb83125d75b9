// Makes the backend that a configuration asks for.
#ifndef TANDEM_KERNELS_FACTORY_H_
#define TANDEM_KERNELS_FACTORY_H_

#include <functional>
#include <memory>

#include "absl/status/statusor.h"
#include "common/config/device_config.h"
#include "kernels/backend.h"

namespace tandem::kernels {

// `device_index` is of the devices that this process may see. INVALID_ARGUMENT for a thread count
// that cannot be; UNAVAILABLE for a device that this program was built without, or that this
// machine lacks; FAILED_PRECONDITION where this machine lacks the instructions, naming them. kAuto
// takes the widest that this machine can run.
absl::StatusOr<std::unique_ptr<Backend>> MakeBackend(const config::DeviceConfig& config,
                                                     int device_index = 0);

// Makes "cuda" known: a program that links a CUDA backend calls this once, first thing in main, so
// that all others have no trace of CUDA.
using DeviceMaker = std::function<absl::StatusOr<std::unique_ptr<Backend>>(int device_index)>;
void RegisterCuda(DeviceMaker maker);

}  // namespace tandem::kernels

#endif  // TANDEM_KERNELS_FACTORY_H_
