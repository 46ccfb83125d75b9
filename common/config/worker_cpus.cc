#include "common/config/worker_cpus.h"

#include <algorithm>
#include <cstddef>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "common/base/status.h"
#include "common/base/strings.h"
#include "common/config/text_form.h"

namespace tandem::config {
namespace {

// On several hosts CPUs may have the same numbers.
absl::Status CheckApart(const ServerConfig& config, const std::vector<CpuSet>& sets,
                        const CpuSet& next) {
  if (!WorkersShareHost(config)) return absl::OkStatus();
  for (const CpuSet& set : sets) {
    const auto shared = std::find_first_of(set.begin(), set.end(), next.begin(), next.end());
    if (shared == set.end()) continue;
    return absl::InvalidArgumentError(absl::StrCat("--worker-cpus ", config.cluster.worker_cpus,
                                                   ": CPU ", *shared, " is given to two workers"));
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<CpuSet> ReadCpuSet(std::string_view text) {
  if (auto cpus = ParseCpuSet(text)) return *std::move(cpus);
  return absl::InvalidArgumentError(
      absl::StrCat(Quoted(text), " is no set of CPUs such as 0-15,32"));
}

absl::StatusOr<std::vector<CpuSet>> WorkerCpus(const ServerConfig& config) {
  std::vector<CpuSet> sets;
  const std::string& text = config.cluster.worker_cpus;
  if (text.empty()) return sets;
  for (const absl::string_view part : absl::StrSplit(text, '/')) {
    absl::StatusOr<CpuSet> cpus = ReadCpuSet(StdSv(part));
    if (!cpus.ok()) return Annotate(cpus.status(), "--worker-cpus");
    TANDEM_RETURN_IF_ERROR(CheckApart(config, sets, *cpus));
    sets.push_back(*std::move(cpus));
  }
  const auto size = static_cast<size_t>(config.cluster.tensor_parallel_size);
  if (sets.size() != size) {
    return absl::InvalidArgumentError(absl::StrCat("--worker-cpus ", text, " is of ", sets.size(),
                                                   " worker(s), --tensor-parallel-size is ", size));
  }
  const DeviceConfig& device = config.worker.device;
  for (const CpuSet& cpus : sets) {
    if (device.device != Device::kCpu || device.threads <= static_cast<int>(cpus.size())) continue;
    return absl::InvalidArgumentError(absl::StrCat("--threads-per-worker ", device.threads,
                                                   ": --worker-cpus ", CpuSetText(cpus), " has ",
                                                   cpus.size(), ", needed one for each thread"));
  }
  return sets;
}

int32_t DefaultThreads(const std::vector<CpuSet>& sets, int32_t cores, int32_t ranks) {
  if (sets.empty()) return std::max(1, cores / ranks);
  size_t threads = kMostThreadsPerWorker;
  for (const CpuSet& cpus : sets) threads = std::min(threads, cpus.size());
  return static_cast<int32_t>(threads);
}

}  // namespace tandem::config
