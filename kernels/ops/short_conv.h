// ShortConv: the causal short convolution in front of a recurrence.
#ifndef TANDEM_KERNELS_OPS_SHORT_CONV_H_
#define TANDEM_KERNELS_OPS_SHORT_CONV_H_

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "kernels/ops/array.h"
#include "kernels/ops/recurrent_batch.h"

namespace tandem::kernels {

inline constexpr uint32_t kMaxConvTaps = 16;

// out[t, c] = silu(sum_j weight[c, j] * x[t - (taps - 1) + j, c]) over j from 0 on: every channel
// is convolved along its sequence, and the last tap is the present row's. Rows before the chunk are
// those of the state, the sequence's last taps - 1 rows of x, oldest first. A row's bits do not
// depend on the chunk.
struct ShortConvParams {
  static constexpr std::string_view kName = "ShortConv";

  RecurrentBatch batch;
  const float* x;       // (T, channels)
  const float* weight;  // (channels, taps)
  uint32_t channels;
  uint32_t taps;  // 2 to kMaxConvTaps
  float* state;   // (num_slots, taps - 1, channels)
  float* out;     // (T, channels), not x

  template <class Params, class Visit>
  static void ForEachPointer(Params& p, Visit&& visit) {
    RecurrentBatch::ForEachPointer(p.batch, visit);
    visit("x", p.x, In(p.batch.tokens, p.channels));
    visit("weight", p.weight, In(p.channels, p.taps));
    visit("state", p.state, InOut(p.batch.num_slots, size_t{p.taps - 1} * p.channels));
    visit("out", p.out, Out(p.batch.tokens, p.channels));
  }
};

}  // namespace tandem::kernels

#endif  // TANDEM_KERNELS_OPS_SHORT_CONV_H_
