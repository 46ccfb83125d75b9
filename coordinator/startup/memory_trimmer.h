// MemoryTrimmer: gives memory that was freed back to the system. The allocator keeps it otherwise:
// 100 MB and more after a flood of connections, of calls that are reset or of long texts.
#ifndef TANDEM_COORDINATOR_STARTUP_MEMORY_TRIMMER_H_
#define TANDEM_COORDINATOR_STARTUP_MEMORY_TRIMMER_H_

#include <cstddef>

namespace tandem::coordinator {

// Of this process. One thread at a time.
class MemoryTrimmer {
 public:
  // To be called every few seconds. Costs a walk over the heap if much was freed since the last.
  void Trim();

 private:
  size_t unused_ = 0;  // what the last walk has left, or less
};

}  // namespace tandem::coordinator

#endif  // TANDEM_COORDINATOR_STARTUP_MEMORY_TRIMMER_H_
