// MemoryUse: what this process takes, as the kernel and the allocator tell it.
#ifndef TANDEM_COORDINATOR_OBSERVE_MEMORY_USE_H_
#define TANDEM_COORDINATOR_OBSERVE_MEMORY_USE_H_

#include <cstdint>

namespace tandem::coordinator {

struct MemoryUse {
  // Pages in memory, those of files and of shared memory included; 0 where /proc does not tell.
  int64_t resident_bytes = 0;
  // Allocated and not freed yet. Unlike resident pages it does not depend on which of the freed
  // ones the allocator keeps, so that it shows a leak early. 0 under sanitizers.
  int64_t allocated_bytes = 0;
};

// Takes the locks of the allocator's arenas for as long as it counts their free chunks, about a
// millisecond: for scrapes. Thread-safe.
MemoryUse MeasureMemory();

}  // namespace tandem::coordinator

#endif  // TANDEM_COORDINATOR_OBSERVE_MEMORY_USE_H_
