// Attention's task functions, in the namespace of the instruction set that the including file is
// compiled for.
#ifndef TANDEM_KERNELS_CPU_ATTENTION_H_
#define TANDEM_KERNELS_CPU_ATTENTION_H_

#include "kernels/cpu/attention_plan.h"
#include "kernels/host/task.h"

namespace tandem::kernels::cpu::TANDEM_CPU_ISA {

void Attend(const AttentionTask& task, const host::TaskContext& context);
void MergeSplits(const AttentionTask& task, const host::TaskContext& context);

}  // namespace tandem::kernels::cpu::TANDEM_CPU_ISA

#endif  // TANDEM_KERNELS_CPU_ATTENTION_H_
