// Task functions of elementwise ops, in the namespace of the instruction set that the including
// file is compiled for.
#ifndef TANDEM_KERNELS_CPU_ELEMENTWISE_H_
#define TANDEM_KERNELS_CPU_ELEMENTWISE_H_

#include "kernels/cpu/kernels.h"
#include "kernels/host/task.h"
#include "kernels/ops.h"

namespace tandem::kernels::cpu::TANDEM_CPU_ISA {

void NormRows(const RmsNormTask& task, const host::TaskContext& context);
void ActivateValues(const ActivateTask& task, const host::TaskContext& context);
void RotateAndWriteToken(const RopeWriteKvParams& params, const host::TaskContext& context);

}  // namespace tandem::kernels::cpu::TANDEM_CPU_ISA

#endif  // TANDEM_KERNELS_CPU_ELEMENTWISE_H_
