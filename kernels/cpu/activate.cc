// Activation functions, compiled once per instruction set.
#include "kernels/cpu/elementwise.h"
#include "kernels/cpu/vec.h"

namespace tandem::kernels::cpu::TANDEM_CPU_ISA {
namespace {

struct Swish {
  static Vec Apply(Vec gate, Vec up) { return Silu(gate) * up; }
};

// (1 + tanh(z)) / 2 is sigmoid(2 z).
struct GeluTanh {
  static Vec Apply(Vec gate, Vec up) {
    const Vec cube = gate * gate * gate;
    const Vec inner = Set1(1.5957691216057308f) * Fma(Set1(0.044715f), cube, gate);
    return gate * Sigmoid(inner) * up;
  }
};

struct ClampedSwiGlu {
  static Vec Apply(Vec gate, Vec up) {
    const Vec limit = Set1(7.0f);
    // The value that may be NaN is the second operand, which the vector minimum propagates.
    const Vec g = Min(limit, gate);
    const Vec u = Max(Zero() - limit, Min(limit, up));
    return g * Sigmoid(Set1(1.702f) * g) * (u + Set1(1.0f));
  }
};

struct SigmoidGate {
  static Vec Apply(Vec gate, Vec up) { return Sigmoid(gate) * up; }
};

// Values [begin, end), whose gates have one scale.
template <typename Function>
void RunScaled(const ActivateTask& task, uint64_t begin, uint64_t end, Vec scale) {
  const Vec one = Set1(1.0f);
  uint64_t i = begin;
  for (; i + kLanes <= end; i += kLanes) {
    const Vec up = task.up != nullptr ? Load(task.up + i) : one;
    Store(task.out + i, Function::Apply(Load(task.gate + i) * scale, up));
  }
  if (i < end) {
    const int n = static_cast<int>(end - i);
    const Vec up = task.up != nullptr ? LoadPartial(task.up + i, n) : one;
    StorePartial(task.out + i, Function::Apply(LoadPartial(task.gate + i, n) * scale, up), n);
  }
}

template <typename Function>
void Run(const ActivateTask& task, uint64_t begin, uint64_t end) {
  if (task.gate_scale == nullptr) return RunScaled<Function>(task, begin, end, Set1(1.0f));
  while (begin < end) {
    const uint64_t row = begin / task.cols;
    const uint64_t row_end = (row + 1) * task.cols < end ? (row + 1) * task.cols : end;
    RunScaled<Function>(task, begin, row_end, Set1(task.gate_scale[row]));
    begin = row_end;
  }
}

}  // namespace

void ActivateValues(const ActivateTask& task, const host::TaskContext& context) {
  const uint64_t begin = context.task * task.values_per_task;
  const uint64_t end =
      task.count - begin < task.values_per_task ? task.count : begin + task.values_per_task;
  switch (task.function) {
    case Activation::kSilu:
      return Run<Swish>(task, begin, end);
    case Activation::kGeluTanh:
      return Run<GeluTanh>(task, begin, end);
    case Activation::kClampedSwiGlu:
      return Run<ClampedSwiGlu>(task, begin, end);
    case Activation::kSigmoid:
      return Run<SigmoidGate>(task, begin, end);
  }
}

}  // namespace tandem::kernels::cpu::TANDEM_CPU_ISA
