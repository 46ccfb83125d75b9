#include "coordinator/startup/memory_trimmer.h"

#include <malloc.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>

namespace tandem::coordinator {
namespace {

constexpr size_t kWorthAWalk = size_t{16} << 20;

// Bytes in memory that the heap has not handed out: freed ones, code, mapped files.
size_t UnusedBytes() {
  size_t total = 0, resident = 0;  // in pages
  std::ifstream("/proc/self/statm") >> total >> resident;
  resident *= static_cast<size_t>(sysconf(_SC_PAGESIZE));
  const struct mallinfo2 heap = mallinfo2();
  return resident - std::min(resident, heap.uordblks + heap.hblkhd);
}

}  // namespace

void MemoryTrimmer::Trim() {
  const size_t unused = UnusedBytes();
  if (unused < unused_ + kWorthAWalk) {
    unused_ = std::min(unused_, unused);
    return;
  }
  malloc_trim(0);
  unused_ = UnusedBytes();
}

}  // namespace tandem::coordinator
