// Online softmax over tiles of scores, and over parts of a context that were computed apart.
#ifndef TANDEM_KERNELS_CUDA_ATTENTION_ONLINE_SOFTMAX_H_
#define TANDEM_KERNELS_CUDA_ATTENTION_ONLINE_SOFTMAX_H_

#include <limits>

#include "kernels/cuda/attention/work.h"
#include "kernels/cuda/device/exp2.h"

namespace tandem::kernels::cuda {

// The score of a masked position.
inline constexpr float kNegInf = -std::numeric_limits<float>::infinity();

// A product of query and key, soft-capped: softcap tanh(dot scale / softcap). What the tensor cores
// have added up has no more digits than this.
__device__ inline float Cap(const AttentionArgs& a, float dot) {
  const float two = 2 * a.p.softcap;
  return a.p.softcap - __fdividef(two, 1 + FastExp2(2 * kLog2E * a.cap_ratio * dot));
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

// Maximum of the scores so far, and the sum of 2^(score - maximum).
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
    const float rescale = FastExp2(before - base());
    sum *= rescale;
    return rescale;
  }
  // Adds the weight of the attention sink of `head`, which has no value.
  __device__ SoftmaxState WithSink(const AttentionParams& p, uint32_t head) const {
    SoftmaxState state = *this;
    if (p.sinks == nullptr) return state;
    const float sink = p.sinks[head] * kLog2E;
    state.UpdateMax(sink);
    state.sum += FastExp2(sink - state.base());
    return state;
  }
};

// Factors of two parts' weighted sums when the parts are merged. Always the same operations, also
// where a compiler could fuse others: a row's bits do not depend on the kernel that merges.
struct MergeFactors {
  float left;
  float right;

  __device__ float Sum(float of_left, float of_right) const {
    return fmaf(of_left, left, __fmul_rn(of_right, right));
  }
};

// Merges the state of a part with that of the part before it.
__device__ inline MergeFactors MergeStates(const SoftmaxState& left, SoftmaxState& state) {
  const SoftmaxState right = state;
  state.largest = max(left.largest, right.largest);
  const MergeFactors factors = {FastExp2(left.largest - state.base()),
                                FastExp2(right.largest - state.base())};
  state.sum = factors.Sum(left.sum, right.sum);
  return factors;
}

// What a row's weighted sums are multiplied with in the end. A row without visible positions gets
// zeros.
__device__ inline float OutputFactor(const AttentionParams& p, uint32_t head,
                                     const SoftmaxState& state) {
  const SoftmaxState with_sink = state.WithSink(p, head);
  return state.sum == 0 ? 0.0f : FastExp2(state.largest - with_sink.base()) / with_sink.sum;
}

// Where a row's output lies.
__device__ inline float* OutputOf(const AttentionArgs& a, const RowTile& tile, uint32_t row) {
  return a.p.out +
         (static_cast<size_t>(tile.Token(row)) * a.p.heads + tile.Head(row)) * a.p.pages.value_dim;
}

// The output of a row.
class RowOut {
 public:
  __device__ RowOut(const AttentionArgs& a, const RowTile& tile, uint32_t row,
                    const SoftmaxState& state)
      : factor_(OutputFactor(a.p, tile.Head(row), state)), values_(OutputOf(a, tile, row)) {}

  __device__ float Value(float sum) const { return sum * factor_; }
  __device__ void Write(uint32_t column, float sum) const { values_[column] = Value(sum); }

 private:
  const float factor_;
  float* const values_;
};

}  // namespace tandem::kernels::cuda

#endif  // TANDEM_KERNELS_CUDA_ATTENTION_ONLINE_SOFTMAX_H_
