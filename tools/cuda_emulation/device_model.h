// DeviceModel: the device that the emulation stands for, as the environment describes it.
//
//   TANDEM_EMULATED_SMS   multiprocessors, default 4
//   TANDEM_EMULATED_ARCH  80, 86, 89 or 90 (default): the compute capability
//   TANDEM_EMULATED_GIB   device memory, default 4; takes as much of this machine's as is touched
#ifndef TANDEM_TOOLS_CUDA_EMULATION_DEVICE_MODEL_H_
#define TANDEM_TOOLS_CUDA_EMULATION_DEVICE_MODEL_H_

#include <cstddef>

namespace tandem::emulation {

struct DeviceModel {
  int multiprocessors = 0;
  int major = 0;  // compute capability
  int minor = 0;
  // Most shared memory of a block, which a kernel must opt in to (CUDA C++ Programming Guide,
  // "Compute Capabilities").
  size_t shared_bytes = 0;
  size_t memory_bytes = 0;
};

// Reads the environment at every call, so that a test may change it. Ends the process on a value
// that it does not know.
DeviceModel TheDeviceModel();

}  // namespace tandem::emulation

#endif  // TANDEM_TOOLS_CUDA_EMULATION_DEVICE_MODEL_H_
