// Makes the backend given by a configuration.
#ifndef TANDEM_KERNELS_FACTORY_H_
#define TANDEM_KERNELS_FACTORY_H_

#include <functional>
#include <memory>

#include "absl/status/statusor.h"
#include "common/base/cpu_set.h"
#include "common/config/device_config.h"
#include "kernels/backend.h"

namespace tandem::kernels {

// `device_index` counts the devices visible to this process. INVALID_ARGUMENT for an invalid thread
// count and fewer CPUs than threads; UNAVAILABLE for a device that this program was built without,
// or that this machine lacks; FAILED_PRECONDITION if this machine lacks the instructions, naming
// them. kAuto takes the widest instruction set that this machine can run. With `cpus`, each thread
// of a CPU backend runs on one of them; the first is the calling thread, with all that it starts
// from then on.
absl::StatusOr<std::unique_ptr<Backend>> MakeBackend(const config::DeviceConfig& config,
                                                     int device_index = 0, const CpuSet& cpus = {});

// Registers "cuda": a program that links a CUDA backend calls this once, at the start of main, so
// that other programs do not depend on CUDA.
using DeviceMaker = std::function<absl::StatusOr<std::unique_ptr<Backend>>(int device_index)>;
void RegisterCuda(DeviceMaker maker);

}  // namespace tandem::kernels

#endif  // TANDEM_KERNELS_FACTORY_H_
