#include "coordinator/observe/memory_use.h"

#include <malloc.h>
#include <unistd.h>

#include <fstream>

namespace tandem::coordinator {
namespace {

int64_t ResidentBytes() {
  std::ifstream statm("/proc/self/statm");  // in pages: the whole size, then what is resident
  int64_t size = 0;
  int64_t resident = 0;
  statm >> size >> resident;
  return statm ? resident * sysconf(_SC_PAGESIZE) : 0;
}

}  // namespace

MemoryUse MeasureMemory() {
  const struct mallinfo2 heap = mallinfo2();
  return {.resident_bytes = ResidentBytes(),
          .allocated_bytes = static_cast<int64_t>(heap.uordblks + heap.hblkhd)};
}

}  // namespace tandem::coordinator
