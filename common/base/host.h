// Facts about this host: which processes can share memory, and how much memory there is.
#ifndef TANDEM_COMMON_BASE_HOST_H_
#define TANDEM_COMMON_BASE_HOST_H_

#include <cstdint>
#include <string>

namespace tandem {

// Equal for processes that can open each other's memory segments: the same boot and the same
// process-id namespace.
std::string HostId();
// The kernel's name of this machine, for display; "" if it has none.
std::string HostName();

// Memory available without swapping, as reported by the kernel, bounded by CgroupMemoryLeft. 0 if
// unknown.
uint64_t AvailableMemoryBytes();

}  // namespace tandem

#endif  // TANDEM_COMMON_BASE_HOST_H_
