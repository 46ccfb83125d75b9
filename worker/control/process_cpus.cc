#include "worker/control/process_cpus.h"

#include <algorithm>
#include <iterator>

#include "absl/strings/str_cat.h"

namespace tandem::worker {

absl::Status ProcessCpus::Use(const CpuSet& cpus) {
  CpuSet missing;
  std::set_difference(cpus.begin(), cpus.end(), own_.begin(), own_.end(),
                      std::back_inserter(missing));
  if (!missing.empty()) {
    return absl::FailedPreconditionError(
        absl::StrCat("--worker-cpus ", CpuSetText(cpus), ": the worker has no CPU ",
                     CpuSetText(missing), ", its CPUs are ", CpuSetText(own_)));
  }
  if (cpus.empty() && !restricted_) return absl::OkStatus();
  restricted_ = !cpus.empty();
  return RestrictProcess(restricted_ ? cpus : own_);
}

}  // namespace tandem::worker
