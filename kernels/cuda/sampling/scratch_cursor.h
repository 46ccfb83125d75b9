// An op's scratch, handed out one array after another, or the count of its bytes.
//
//   size_t PlaceScratch(Task& task, std::byte* scratch) {
//     ScratchCursor cursor(scratch);
//     cursor.Take(task.sums, rows * pieces);
//     return cursor.used();
//   }
//   PlaceScratch(task, stream.Scratch(PlaceScratch(task, nullptr)));
#ifndef TANDEM_KERNELS_CUDA_SAMPLING_SCRATCH_CURSOR_H_
#define TANDEM_KERNELS_CUDA_SAMPLING_SCRATCH_CURSOR_H_

#include <cstddef>

#include "kernels/cuda/stream.h"

namespace tandem::kernels::cuda {

class ScratchCursor {
 public:
  // Null: bytes are counted, and no pointer is set.
  explicit ScratchCursor(std::byte* scratch) : scratch_(scratch) {}

  template <typename T>
  void Take(T*& data, size_t count) {
    if (scratch_ != nullptr) data = reinterpret_cast<T*>(scratch_ + used_);
    used_ += ScratchBytes(count * sizeof(T));
  }
  size_t used() const { return used_; }

 private:
  std::byte* const scratch_;
  size_t used_ = 0;
};

}  // namespace tandem::kernels::cuda

#endif  // TANDEM_KERNELS_CUDA_SAMPLING_SCRATCH_CURSOR_H_
