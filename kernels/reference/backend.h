// The reference backend: slow and simple; the ground truth of tests. Runs on every machine.
#ifndef TANDEM_KERNELS_REFERENCE_BACKEND_H_
#define TANDEM_KERNELS_REFERENCE_BACKEND_H_

#include <cstdint>
#include <memory>

#include "common/base/cpu_set.h"
#include "kernels/backend.h"

namespace tandem::kernels::reference {

// `cpus` as ThreadStream's.
std::unique_ptr<Backend> MakeReferenceBackend(uint32_t threads, const CpuSet& cpus = {});

}  // namespace tandem::kernels::reference

#endif  // TANDEM_KERNELS_REFERENCE_BACKEND_H_
