// A softmax that takes scores tile by tile, and where its result goes: to the output, or to scratch
// as a part that EncodeAttentionMerge puts together with others.
#ifndef TANDEM_KERNELS_CUDA_OPS_ATTENTION_SOFTMAX_H_
#define TANDEM_KERNELS_CUDA_OPS_ATTENTION_SOFTMAX_H_

#include <limits>

#include "kernels/cuda/ops/attention_work.h"

namespace tandem::kernels::cuda {

// The score of what is not seen.
inline constexpr float kNothing = -std::numeric_limits<float>::infinity();

__device__ inline float CappedScore(const AttentionParams& p, float dot) {
  const float score = dot * p.scale;
  return p.softcap == 0 ? score : p.softcap * tanhf(score / p.softcap);
}

// Positions [begin, end).
struct RowRange {
  int32_t begin = 0;
  int32_t end = 0;
};

// What row `row` of a tile sees: nothing, where the tile has no such row.
__device__ inline RowRange SeenBy(const AttentionArgs& a, const RowTile& tile, uint32_t row) {
  if (row >= tile.rows) return {};
  return {.begin = tile.First(row, a.p.window), .end = tile.Last(row) + 1};
}

// Of scores seen so far: their maximum, and the sum of exp(score - maximum).
struct SoftmaxState {
  float largest = kNothing;
  float sum = 0;

  // What exponents are taken relative to: never infinite.
  __device__ float base() const { return largest == kNothing ? 0.0f : largest; }
  // Takes a maximum of new scores. What sums so far must be multiplied by; `sum` already is.
  __device__ float Raise(float score) {
    const float before = largest;
    largest = max(largest, score);
    const float decay = expf(before - base());
    sum *= decay;
    return decay;
  }
  // With the weight of the sink of `head`, which has no value.
  __device__ SoftmaxState WithSink(const AttentionParams& p, uint32_t head) const {
    SoftmaxState state = *this;
    if (p.sinks == nullptr) return state;
    state.Raise(p.sinks[head]);
    state.sum += expf(p.sinks[head] - state.base());
    return state;
  }
};

// Where one row's result goes.
class RowOut {
 public:
  // `whole`: the state covers all positions that the row sees.
  __device__ RowOut(const AttentionArgs& a, const RowTile& tile, uint32_t row, uint32_t split,
                    bool whole, const SoftmaxState& state)
      : whole_(whole) {
    const uint32_t head = tile.Head(row);
    const size_t at = static_cast<size_t>(tile.Token(row)) * a.p.heads + head;
    if (whole) {
      const SoftmaxState with_sink = state.WithSink(a.p, head);
      // A row that sees nothing is all zeros.
      factor_ = state.sum == 0 ? 0.0f : expf(state.largest - with_sink.base()) / with_sink.sum;
      values_ = a.p.out + at * a.p.pages.value_dim;
      return;
    }
    const size_t part = static_cast<size_t>(split) * a.p.tokens * a.p.heads + at;
    values_ = a.sums + part * a.p.pages.value_dim;
    state_ = a.states + part;
  }

  __device__ void Write(uint32_t column, float sum) const { values_[column] = sum * factor_; }
  // By one thread per row.
  __device__ void WriteState(const SoftmaxState& state) const {
    if (!whole_) *state_ = make_float2(state.largest, state.sum);
  }

 private:
  const bool whole_;
  float factor_ = 1;
  float* values_;
  float2* state_ = nullptr;
};

}  // namespace tandem::kernels::cuda

#endif  // TANDEM_KERNELS_CUDA_OPS_ATTENTION_SOFTMAX_H_
