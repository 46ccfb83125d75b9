// Programmatic dependent launch (sm_90; CUDA Programming Guide): a kernel that Stream::LaunchEarly
// has launched may begin while those before it still run. What a launch costs, and what a kernel
// does before it needs their results, then happens in their time.
//
//   __global__ void Kernel(const Task task) {
//     ... reads of weights and parameters ...
//     FollowEarlierLaunches();   // every thread, before it reads or writes anything else
//
// What other launches write is not read by __ldg, nor through `const __restrict__`: such loads are
// for what stays as it is while a kernel is there.
//
// A kernel launched so must call it in every thread, also in those that have nothing to do: the
// launch behind it waits for this one alone. Under emulation a thread that does not is an error.
#ifndef TANDEM_KERNELS_CUDA_DEVICE_LAUNCH_ORDER_H_
#define TANDEM_KERNELS_CUDA_DEVICE_LAUNCH_ORDER_H_

#include <cuda_runtime.h>

#ifdef TANDEM_CUDA_EMULATION
#include "tools/cuda_emulation/execution.h"
#endif

namespace tandem::kernels::cuda {

// Waits until all earlier launches have ended and what they wrote is visible; lets the next one
// begin as soon as all blocks of this one are here.
#ifdef TANDEM_CUDA_EMULATION
inline void FollowEarlierLaunches() { emulation::NoteFollowed(); }
#else
__device__ __forceinline__ void FollowEarlierLaunches() {
#if __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
  asm volatile("griddepcontrol.wait;" ::: "memory");
#endif
}
#endif

}  // namespace tandem::kernels::cuda

#endif  // TANDEM_KERNELS_CUDA_DEVICE_LAUNCH_ORDER_H_
