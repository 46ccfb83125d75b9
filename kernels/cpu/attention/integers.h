// What attention over Q8_0 pages that stay integers shares, whether it multiplies bytes or 16-bit
// integers. Included by files that are compiled once per instruction set.
#ifndef TANDEM_KERNELS_CPU_ATTENTION_INTEGERS_H_
#define TANDEM_KERNELS_CPU_ATTENTION_INTEGERS_H_

#include "kernels/cpu/page_rows.h"
#include "kernels/cpu/vec.h"

namespace tandem::kernels::cpu::TANDEM_CPU_ISA {

inline constexpr uint32_t kBlockValues = Q8_0Rows::Block::kValues;

// A query row is rounded to integers times a step.
struct QueryStep {
  float step;        // NaN if a value of the row is not finite
  float reciprocal;  // zero if `step` has none that is finite
};
// Of a row of `dim` values, which become integers within +-largest.
inline QueryStep StepOfQuery(const float* q, uint32_t dim, float largest) {
  Vec most = Zero(), poison = Zero();
  for (uint32_t d = 0; d < dim; d += kLanes) {
    const Vec v = Load(q + d);
    most = Max(most, Max(v, Zero() - v));
    poison = Fma(v, Zero(), poison);  // NaN once a value is not finite
  }
  const float step = ReduceMax(most) / largest + ReduceAdd(poison);
  // Values too small for a reciprocal count as zeros.
  return {step, step > 1e-30f && step < __builtin_inff() ? 1.0f / step : 0.0f};
}

}  // namespace tandem::kernels::cpu::TANDEM_CPU_ISA

#endif  // TANDEM_KERNELS_CPU_ATTENTION_INTEGERS_H_
