// RmsNorm, compiled once per instruction set.
#include "kernels/cpu/elementwise.h"
#include "kernels/cpu/vec.h"

namespace tandem::kernels::cpu::TANDEM_CPU_ISA {
namespace {

// Number of independent vector accumulators for sums of squares; depends only on the dimension.
constexpr uint32_t kChains = 4;
constexpr uint32_t kStep = kChains * kLanes;

// residual += add, if any; returns the sum of squares of the result.
float AddAndSumSquares(float* residual, const float* add, uint32_t dim) {
  Vec sums[kChains] = {Zero(), Zero(), Zero(), Zero()};
  uint32_t i = 0;
  for (; i + kStep <= dim; i += kStep) {
    for (uint32_t c = 0; c < kChains; ++c) {
      float* const at = residual + i + c * kLanes;
      Vec x = Load(at);
      if (add != nullptr) Store(at, x = x + Load(add + i + c * kLanes));
      sums[c] = Fma(x, x, sums[c]);
    }
  }
  for (; i < dim; i += kLanes) {
    const int n = dim - i < kLanes ? static_cast<int>(dim - i) : kLanes;
    Vec x = LoadPartial(residual + i, n);
    if (add != nullptr) StorePartial(residual + i, x = x + LoadPartial(add + i, n), n);
    sums[0] = Fma(x, x, sums[0]);
  }
  return ReduceAdd((sums[0] + sums[1]) + (sums[2] + sums[3]));
}

void NormRow(const RmsNormParams& p, size_t row) {
  float* const residual = p.residual + row * p.dim;
  float* const out = p.out + row * (p.out_stride == 0 ? p.dim : p.out_stride);
  const float* const add = p.add == nullptr ? nullptr : p.add + row * p.dim;
  const float mean = p.sum_squares != nullptr
                         ? p.sum_squares[row] / static_cast<float>(p.sum_dim)
                         : AddAndSumSquares(residual, add, p.dim) / static_cast<float>(p.dim);
  const Vec scale = Set1(1.0f / __builtin_sqrtf(mean + p.epsilon));
  const float* const gate = p.gate == nullptr ? nullptr : p.gate + row * p.dim;
  uint32_t i = 0;
  for (; i + kLanes <= p.dim; i += kLanes) {
    const Vec x = Load(residual + i) * scale * Load(p.weight + i);
    Store(out + i, gate == nullptr ? x : x * Silu(Load(gate + i)));
  }
  if (i < p.dim) {
    const int n = static_cast<int>(p.dim - i);
    const Vec x = LoadPartial(residual + i, n) * scale * LoadPartial(p.weight + i, n);
    StorePartial(out + i, gate == nullptr ? x : x * Silu(LoadPartial(gate + i, n)), n);
  }
}

}  // namespace

void NormRows(const RmsNormTask& task, const host::TaskContext& context) {
  const uint32_t begin = context.task * task.rows_per_task;
  const uint32_t left = task.params.rows - begin;
  const uint32_t count = left < task.rows_per_task ? left : task.rows_per_task;
  for (uint32_t row = begin; row < begin + count; ++row) NormRow(task.params, row);
}

}  // namespace tandem::kernels::cpu::TANDEM_CPU_ISA
