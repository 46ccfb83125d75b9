// Which CPUs the workers run on, from --worker-cpus.
#ifndef TANDEM_COMMON_CONFIG_WORKER_CPUS_H_
#define TANDEM_COMMON_CONFIG_WORKER_CPUS_H_

#include <cstdint>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "common/base/cpu_set.h"
#include "common/config/server_config.h"

namespace tandem::config {

// INVALID_ARGUMENT, in one line, for a text that is no set.
absl::StatusOr<CpuSet> ReadCpuSet(std::string_view text);

// One set per rank; none at all if the setting is empty. INVALID_ARGUMENT for a text that is no
// such list, another number of sets than ranks, and threads that have no CPU of their own.
absl::StatusOr<std::vector<CpuSet>> WorkerCpus(const ServerConfig& config);

// Threads of a CPU worker where the configuration leaves them open: as many as the smallest set of
// WorkerCpus has CPUs; without sets, a rank's part of the `cores` that the machine has. At least 1.
int32_t DefaultThreads(const std::vector<CpuSet>& sets, int32_t cores, int32_t ranks);

}  // namespace tandem::config

#endif  // TANDEM_COMMON_CONFIG_WORKER_CPUS_H_
