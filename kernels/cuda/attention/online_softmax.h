// Online softmax over tiles of scores. The result is written to the output or, for one split of
// several, to scratch, where EncodeAttentionMerge merges the splits.
#ifndef TANDEM_KERNELS_CUDA_ATTENTION_ONLINE_SOFTMAX_H_
#define TANDEM_KERNELS_CUDA_ATTENTION_ONLINE_SOFTMAX_H_

#include <limits>

#include "kernels/cuda/attention/work.h"

namespace tandem::kernels::cuda {

// The score of a masked position.
inline constexpr float kNegInf = -std::numeric_limits<float>::infinity();

__device__ inline float ScaleAndCap(const AttentionParams& p, float dot) {
  const float score = dot * p.scale;
  return p.softcap == 0 ? score : p.softcap * tanhf(score / p.softcap);
}

// Positions [begin, end).
struct RowRange {
  int32_t begin = 0;
  int32_t end = 0;
};

// Positions that row `row` of a tile attends to; empty if the tile has no such row.
__device__ inline RowRange VisibleRange(const AttentionArgs& a, const RowTile& tile, uint32_t row) {
  if (row >= tile.rows) return {};
  return {.begin = tile.First(row, a.p), .end = tile.Last(row) + 1};
}

// Maximum of the scores so far, and the sum of exp(score - maximum).
struct SoftmaxState {
  float largest = kNegInf;
  float sum = 0;

  // The finite reference that exponents are taken relative to.
  __device__ float base() const { return largest == kNegInf ? 0.0f : largest; }
  // Includes the maximum of new scores. Returns the factor that rescales the accumulators; `sum` is
  // already rescaled.
  __device__ float UpdateMax(float score) {
    const float before = largest;
    largest = max(largest, score);
    const float rescale = expf(before - base());
    sum *= rescale;
    return rescale;
  }
  // Adds the weight of the attention sink of `head`, which has no value.
  __device__ SoftmaxState WithSink(const AttentionParams& p, uint32_t head) const {
    SoftmaxState state = *this;
    if (p.sinks == nullptr) return state;
    state.UpdateMax(p.sinks[head]);
    state.sum += expf(p.sinks[head] - state.base());
    return state;
  }
};

// Where one row's result is written.
class RowOut {
 public:
  // `whole`: there is only one split, so the state covers all visible positions.
  __device__ RowOut(const AttentionArgs& a, const RowTile& tile, uint32_t row, uint32_t split,
                    bool whole, const SoftmaxState& state)
      : whole_(whole) {
    const uint32_t head = tile.Head(row);
    const size_t at = static_cast<size_t>(tile.Token(row)) * a.p.heads + head;
    if (whole) {
      const SoftmaxState with_sink = state.WithSink(a.p, head);
      // The output of a row without visible positions is all zeros.
      factor_ = state.sum == 0 ? 0.0f : expf(state.largest - with_sink.base()) / with_sink.sum;
      values_ = a.p.out + at * a.p.pages.value_dim;
      return;
    }
    const size_t part = static_cast<size_t>(split) * a.p.tokens * a.p.heads + at;
    values_ = a.sums + part * a.p.pages.value_dim;
    state_ = a.states + part;
  }

  __device__ void Write(uint32_t column, float sum) const { values_[column] = sum * factor_; }
  // Called by one thread per row.
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

#endif  // TANDEM_KERNELS_CUDA_ATTENTION_ONLINE_SOFTMAX_H_
