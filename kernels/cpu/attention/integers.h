// What attention over Q8_0 pages that stay integers shares, whether it multiplies bytes or 16-bit
// integers. Included by files that are compiled once per instruction set.
#ifndef TANDEM_KERNELS_CPU_ATTENTION_INTEGERS_H_
#define TANDEM_KERNELS_CPU_ATTENTION_INTEGERS_H_

#include "kernels/cpu/attention/plan.h"
#include "kernels/cpu/page_rows.h"
#include "kernels/cpu/vec.h"

namespace tandem::kernels::cpu::TANDEM_CPU_ISA {

inline constexpr uint32_t kBlockValues = Q8_0Rows::Block::kValues;
inline constexpr int kTilePairs = kTilePositions / 2;

// As instructions take them: with __m512i gcc copies every sum in every turn of a loop.
using Ints = int __attribute__((vector_size(sizeof(Vec))));

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

// scores[r * 64 + lane] of R rows take the sums of block `b` of `blocks` times scale(c), its
// scales; with the last block they are complete, times the step of each row, `stride` apart.
template <int R, int Vecs, typename Scale>
__attribute__((always_inline)) inline void AddBlockScores(const Ints (&sums)[R][Vecs], Scale scale,
                                                          uint32_t b, uint32_t blocks,
                                                          const float* steps, uint32_t stride,
                                                          float* scores) {
  for (int c = 0; c < Vecs; ++c) {
    const Vec scales = scale(c);
    for (int r = 0; r < R; ++r) {
      float* const score = scores + r * kTilePositions + c * kLanes;
      const Vec sum = __builtin_convertvector(sums[r][c], Vec);
      Vec total = b == 0 ? sum * scales : Fma(sum, scales, Load(score));
      if (b + 1 == blocks) total = total * Set1(steps[static_cast<uint32_t>(r) * stride]);
      Store(score, total);
    }
  }
}

}  // namespace tandem::kernels::cpu::TANDEM_CPU_ISA

#endif  // TANDEM_KERNELS_CPU_ATTENTION_INTEGERS_H_
