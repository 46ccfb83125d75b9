// The table of one instruction set.
#include "kernels/cpu/elementwise.h"
#include "kernels/cpu/kernels.h"
#include "kernels/cpu/recurrent.h"

namespace tandem::kernels::cpu::TANDEM_CPU_ISA {

// Filled at compile time: no code of this file may run before the run-time check.
constinit const Kernels kKernels = {
    .rms_norm = &NormRows,
    .activate = &ActivateValues,
    .rope_write_kv = &RotateAndWriteToken,
    .short_conv = &ConvChannels,
    .gated_delta_rule = &RunDeltaRule,
};

}  // namespace tandem::kernels::cpu::TANDEM_CPU_ISA
