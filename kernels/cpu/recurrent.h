// Task functions of ops with a recurrent state, in the namespace of the instruction set that the
// including file is compiled for.
#ifndef TANDEM_KERNELS_CPU_RECURRENT_H_
#define TANDEM_KERNELS_CPU_RECURRENT_H_

#include "kernels/cpu/kernels.h"
#include "kernels/host/task.h"
#include "kernels/ops.h"

namespace tandem::kernels::cpu::TANDEM_CPU_ISA {

void ConvChannels(const ShortConvParams& params, const host::TaskContext& context);
void RunDeltaRule(const GatedDeltaRuleParams& params, const host::TaskContext& context);

}  // namespace tandem::kernels::cpu::TANDEM_CPU_ISA

#endif  // TANDEM_KERNELS_CPU_RECURRENT_H_
