// Arguments of an OpList task. A separate header, so that files of one instruction set include next
// to nothing.
#ifndef TANDEM_KERNELS_HOST_TASK_H_
#define TANDEM_KERNELS_HOST_TASK_H_

#include <cstddef>
#include <cstdint>

namespace tandem::kernels::host {

// Scratch is 64-byte aligned, has the size given to OpList::ReserveScratch, and starts with
// undefined contents; the shared part keeps what earlier entries of the same op call wrote.
struct TaskContext {
  uint32_t task;    // in [0, num_tasks)
  uint32_t thread;  // in [0, threads)
  std::byte* shared_scratch;
  std::byte* thread_scratch;
};

}  // namespace tandem::kernels::host

#endif  // TANDEM_KERNELS_HOST_TASK_H_
