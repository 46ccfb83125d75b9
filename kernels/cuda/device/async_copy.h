// Copies from device memory to shared memory that overlap the thread's other work (cp.async, sm_80
// and later): begun one by one, closed into groups, waited for by group. The thread may read the
// data after WaitForCopies, the rest of the block after a following barrier.
//
// Under emulation a copy takes effect only when it is waited for, so a missing wait shows.
#ifndef TANDEM_KERNELS_CUDA_DEVICE_ASYNC_COPY_H_
#define TANDEM_KERNELS_CUDA_DEVICE_ASYNC_COPY_H_

#include <cuda_runtime.h>

#include <cstdint>

#include "kernels/cuda/device/shared_array.h"

namespace tandem::kernels::cuda {

#ifdef TANDEM_CUDA_EMULATION

// 16 bytes from `from` (aligned to 16) to element `i` of `to`.
inline void BeginCopy16(SharedArray<uint4> to, uint32_t i, const void* from) {
  emulation::WantAligned(from, 16);
  emulation::MyAsyncCopies().open.push_back(
      [to, i, from] { to[i] = *static_cast<const uint4*>(from); });
}
// The same of bytes that other warps of the multiprocessor read too: through its L1 cache.
inline void BeginCachedCopy16(SharedArray<uint4> to, uint32_t i, const void* from) {
  BeginCopy16(to, i, from);
}
// The same, or zeros: then `from` is not read.
inline void BeginCopy16OrZeros(SharedArray<uint4> to, uint32_t i, const void* from, bool copies) {
  emulation::WantAligned(from, 16);
  emulation::MyAsyncCopies().open.push_back([to, i, from, copies] {
    to[i] = copies ? *static_cast<const uint4*>(from) : make_uint4(0, 0, 0, 0);
  });
}
// The same for 8 and for 4 bytes, aligned to their size.
inline void BeginCopy8(SharedArray<uint2> to, uint32_t i, const void* from) {
  emulation::WantAligned(from, 8);
  emulation::MyAsyncCopies().open.push_back(
      [to, i, from] { to[i] = *static_cast<const uint2*>(from); });
}
inline void BeginCopy4(SharedArray<uint32_t> to, uint32_t i, const void* from) {
  emulation::WantAligned(from, 4);
  emulation::MyAsyncCopies().open.push_back(
      [to, i, from] { to[i] = *static_cast<const uint32_t*>(from); });
}
// Closes the copies begun since the last call into a group.
inline void EndCopyGroup() {
  auto& copies = emulation::MyAsyncCopies();
  copies.groups.push_back(std::move(copies.open));
  copies.open.clear();
}
// Waits until at most the `kLater` most recent groups are in flight.
template <int kLater>
void WaitForCopies() {
  auto& groups = emulation::MyAsyncCopies().groups;
  while (groups.size() > kLater) {
    for (const auto& copy : groups.front()) copy();
    groups.erase(groups.begin());
  }
}

#else

__device__ inline void BeginCopy16(SharedArray<uint4> to, uint32_t i, const void* from) {
  const auto address = static_cast<uint32_t>(__cvta_generic_to_shared(&to[i]));
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(address), "l"(from) : "memory");
}
__device__ inline void BeginCachedCopy16(SharedArray<uint4> to, uint32_t i, const void* from) {
  const auto address = static_cast<uint32_t>(__cvta_generic_to_shared(&to[i]));
  asm volatile("cp.async.ca.shared.global [%0], [%1], 16;" ::"r"(address), "l"(from) : "memory");
}
__device__ inline void BeginCopy16OrZeros(SharedArray<uint4> to, uint32_t i, const void* from,
                                          bool copies) {
  const auto address = static_cast<uint32_t>(__cvta_generic_to_shared(&to[i]));
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(address), "l"(from),
               "r"(copies ? 16 : 0)
               : "memory");
}
__device__ inline void BeginCopy8(SharedArray<uint2> to, uint32_t i, const void* from) {
  const auto address = static_cast<uint32_t>(__cvta_generic_to_shared(&to[i]));
  asm volatile("cp.async.ca.shared.global [%0], [%1], 8;" ::"r"(address), "l"(from) : "memory");
}
__device__ inline void BeginCopy4(SharedArray<uint32_t> to, uint32_t i, const void* from) {
  const auto address = static_cast<uint32_t>(__cvta_generic_to_shared(&to[i]));
  asm volatile("cp.async.ca.shared.global [%0], [%1], 4;" ::"r"(address), "l"(from) : "memory");
}
__device__ inline void EndCopyGroup() { asm volatile("cp.async.commit_group;" ::: "memory"); }
template <int kLater>
__device__ void WaitForCopies() {
  asm volatile("cp.async.wait_group %0;" ::"n"(kLater) : "memory");
}

#endif

}  // namespace tandem::kernels::cuda

#endif  // TANDEM_KERNELS_CUDA_DEVICE_ASYNC_COPY_H_
