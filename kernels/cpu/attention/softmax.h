// The online softmax of attention: states of query rows, how a tile's scores enter them, how states
// of splits are merged and become outputs (Milakov and Gimelshein, 2018). Included by files that
// are compiled once per instruction set.
#ifndef TANDEM_KERNELS_CPU_ATTENTION_SOFTMAX_H_
#define TANDEM_KERNELS_CPU_ATTENTION_SOFTMAX_H_

#include "kernels/cpu/attention/plan.h"
#include "kernels/cpu/attention/products.h"
#include "kernels/cpu/vec.h"
#if defined(TANDEM_INTEGER_ATTENTION)
#include "kernels/cpu/attention/integer_tile.h"
#endif

namespace tandem::kernels::cpu::TANDEM_CPU_ISA {

// The softmax state of a row over some positions: sums of exp(score - largest) * V, then (from
// `columns` on) the largest score and the sum of exp(score - largest). Also the form of a partial
// in shared scratch.
struct State {
  float* values;
  uint32_t columns;

  float& largest() const { return values[columns]; }
  float& weight() const { return values[columns + 1]; }

  void Clear() const {
    for (uint32_t c = 0; c < columns; c += kLanes) Store(values + c, Zero());
    largest() = -__builtin_inff();
    weight() = 0;
  }
  void Scale(float factor) const {
    const Vec by = Set1(factor);
    for (uint32_t c = 0; c < columns; c += kLanes) Store(values + c, Load(values + c) * by);
  }
};

// Merges `part` into `total`; the first split is copied.
inline void MergeSplit(const State& total, const State& part, bool first) {
  if (first) {
    __builtin_memcpy(total.values, part.values, (total.columns + kPadding) * sizeof(float));
    return;
  }
  const float a = total.largest(), b = part.largest();
  const float largest = a < b ? b : a;
  const float scale_total = ExpOne(a - largest), scale_part = ExpOne(b - largest);
  const Vec by_total = Set1(scale_total), by_part = Set1(scale_part);
  for (uint32_t c = 0; c < total.columns; c += kLanes) {
    Store(total.values + c, Fma(Load(part.values + c), by_part, Load(total.values + c) * by_total));
  }
  total.largest() = largest;
  total.weight() = total.weight() * scale_total + part.weight() * scale_part;
}

// The row's output. A sink is one more score in the softmax, without a value; it is added here,
// once, after all splits are merged.
inline void WriteRow(const State& state, const float* sink, float* out, uint32_t dim) {
  const bool padding = state.weight() == 0;  // attended to no position: zeros
  float scale = padding ? 0 : 1.0f / state.weight();
  if (sink != nullptr && !padding) {
    const float largest = state.largest() < *sink ? *sink : state.largest();
    const float rescale = ExpOne(state.largest() - largest);
    scale = rescale / (state.weight() * rescale + ExpOne(*sink - largest));
  }
  const Vec by = Set1(scale);
  for (uint32_t c = 0; c < dim; c += kLanes) {
    const int left = static_cast<int>(dim - c);
    const Vec value = Load(state.values + c) * by;
    if (left >= kLanes) {
      Store(out + c, value);
    } else {
      StorePartial(out + c, value, left);
    }
  }
}

// Scores of one tile become cap * tanh(scale * score / cap).
inline void CapScores(float* scores, float scale, float cap) {
  const Vec in = Set1(scale / cap), out = Set1(cap);
  for (int32_t i = 0; i < kTilePositions; i += kLanes)
    Store(scores + i, Tanh(Load(scores + i) * in) * out);
}

// Of one row: its scaled scores, minus infinity outside [begin, end), and the largest of them.
inline float ScaleScores(float* scores, int32_t begin, int32_t end, float scale) {
  const Vec by = Set1(scale), never = Set1(-__builtin_inff());
  Vec largest = never;
  const bool whole = begin == 0 && end == kTilePositions;
  for (int32_t c = 0; c < kTilePositions; c += kLanes) {
    Vec score = Load(scores + c) * by;
    if (!whole) score = Select(LanesIn(begin - c, end - c), score, never);
    Store(scores + c, score);
    largest = Max(largest, score);
  }
  return ReduceMax(largest);
}

// Online-softmax update of R rows: scores of one tile become weights relative to each row's new
// largest score (Products::Weigh), zero outside [begin, end); the states, `stride` apart, are
// rescaled to it. In stages, so that no row waits for another; a row that sees nothing of the tile
// stays as it is.
template <int R>
inline void WeighRows(float* scores, const int32_t begin[R], const int32_t end[R], float scale,
                      const State& first, uint32_t stride) {
  float now[R];
  for (int r = 0; r < R; ++r) {
    if (begin[r] >= end[r]) continue;
    const float in_tile = ScaleScores(scores + r * kTilePositions, begin[r], end[r], scale);
    const float before = first.values[static_cast<uint32_t>(r) * stride + first.columns];
    now[r] = before < in_tile ? in_tile : before;
  }
  Vec sums[R];
  for (int r = 0; r < R; ++r) {
    if (begin[r] >= end[r]) continue;
    sums[r] = Products::Weigh(scores + r * kTilePositions, Set1(now[r]));
  }
  for (int r = 0; r < R; ++r) {
    if (begin[r] >= end[r]) continue;
    const State state{first.values + static_cast<uint32_t>(r) * stride, first.columns};
    const float sum = ReduceAdd(sums[r]), before = state.largest();
    if (before == now[r]) {
      state.weight() += sum;
      continue;
    }
    const float rescale = ExpOne(before - now[r]);
    state.Scale(rescale);
    state.largest() = now[r];
    state.weight() = state.weight() * rescale + sum;
  }
}

}  // namespace tandem::kernels::cpu::TANDEM_CPU_ISA

#endif  // TANDEM_KERNELS_CPU_ATTENTION_SOFTMAX_H_
