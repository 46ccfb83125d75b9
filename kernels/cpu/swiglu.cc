// SwiGlu, compiled once per instruction set.
#include "kernels/cpu/elementwise.h"
#include "kernels/cpu/vec.h"

namespace tandem::kernels::cpu::TANDEM_CPU_ISA {
namespace {

// gate / (1 + exp(-gate)) * up
inline Vec Gate(Vec gate, Vec up) { return gate / (Set1(1.0f) + Exp(Zero() - gate)) * up; }

}  // namespace

void GateValues(const SwiGluTask& task, const host::TaskContext& context) {
  uint64_t i = context.task * task.values_per_task;
  const uint64_t end =
      task.count - i < task.values_per_task ? task.count : i + task.values_per_task;
  for (; i + kLanes <= end; i += kLanes)
    Store(task.out + i, Gate(Load(task.gate + i), Load(task.up + i)));
  if (i < end) {
    const int n = static_cast<int>(end - i);
    StorePartial(task.out + i, Gate(LoadPartial(task.gate + i, n), LoadPartial(task.up + i, n)), n);
  }
}

}  // namespace tandem::kernels::cpu::TANDEM_CPU_ISA
