// The cpu backend: SIMD kernels of one instruction set, chosen at run time.
#ifndef TANDEM_KERNELS_CPU_BACKEND_H_
#define TANDEM_KERNELS_CPU_BACKEND_H_

#include <cstdint>
#include <memory>

#include "common/base/cpu_set.h"
#include "kernels/backend.h"
#include "kernels/cpu/isa.h"

namespace tandem::kernels::cpu {

// With `repack`, PlaceWeight copies a weight that is not for lookups alone (WeightStore); without,
// ops read it where it is. `cpus` as ThreadStream's. REQUIRES: MissingInstructions(isa) is empty.
std::unique_ptr<Backend> MakeCpuBackend(Isa isa, uint32_t threads, bool repack,
                                        const CpuSet& cpus = {});

}  // namespace tandem::kernels::cpu

#endif  // TANDEM_KERNELS_CPU_BACKEND_H_
