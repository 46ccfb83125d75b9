// ProcessCpus: the CPUs that this process runs on, of those that it was started with.
#ifndef TANDEM_WORKER_CONTROL_PROCESS_CPUS_H_
#define TANDEM_WORKER_CONTROL_PROCESS_CPUS_H_

#include "absl/status/status.h"
#include "common/base/cpu_set.h"

namespace tandem::worker {

// Not thread-safe.
class ProcessCpus {
 public:
  // All threads, also of the process's whole set again if `cpus` is empty. FAILED_PRECONDITION for
  // CPUs that are not in it: another machine's, or the container has fewer.
  absl::Status Use(const CpuSet& cpus);

 private:
  const CpuSet own_ = UsableCpus();
  bool restricted_ = false;
};

}  // namespace tandem::worker

#endif  // TANDEM_WORKER_CONTROL_PROCESS_CPUS_H_
