// What the control groups of this process leave it of memory.
#ifndef TANDEM_COMMON_BASE_CGROUP_MEMORY_H_
#define TANDEM_COMMON_BASE_CGROUP_MEMORY_H_

#include <cstdint>
#include <string>

namespace tandem {

// The least that is left in the process's group and those around it, by cgroup v2 or v1 (memory),
// where the page cache that the kernel may take back counts as left. The largest number without a
// limit. `root`: where /proc and /sys are.
uint64_t CgroupMemoryLeft(const std::string& root = "");

}  // namespace tandem

#endif  // TANDEM_COMMON_BASE_CGROUP_MEMORY_H_
