// CpuSet: which CPUs threads may run on, in the form that Linux writes it: "0-15,32".
#ifndef TANDEM_COMMON_BASE_CPU_SET_H_
#define TANDEM_COMMON_BASE_CPU_SET_H_

#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "absl/status/status.h"

namespace tandem {

// Numbers of CPUs, each once, ascending.
using CpuSet = std::vector<int>;

// Nothing for a text that is no set, an empty one, and numbers above 4095.
std::optional<CpuSet> ParseCpuSet(std::string_view text);
std::string CpuSetText(const CpuSet& cpus);

// Those that the calling thread may run on; empty if the system does not say.
CpuSet UsableCpus();

// Lets all threads of this process, and those that they start, run on `cpus` alone.
absl::Status RestrictProcess(const CpuSet& cpus);
// Likewise, the calling thread.
absl::Status RestrictThread(const CpuSet& cpus);
// Likewise, a thread that was started and not yet joined.
absl::Status RestrictThread(std::thread& thread, const CpuSet& cpus);

}  // namespace tandem

#endif  // TANDEM_COMMON_BASE_CPU_SET_H_
