// Ops on logits: UnshardLogits and SoftCap.
#ifndef TANDEM_KERNELS_OPS_LOGITS_H_
#define TANDEM_KERNELS_OPS_LOGITS_H_

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "kernels/ops/array.h"

namespace tandem::kernels {

// Puts gathered vocabulary slices in their columns: out[row, starts[r] + c] = gathered[r, row, c]
// for c < starts[r+1] - starts[r]. Columns below starts[0] stay as they are.
struct UnshardLogitsParams {
  static constexpr std::string_view kName = "UnshardLogits";

  const float* gathered;   // (ranks, rows, slice_max)
  const uint32_t* starts;  // (ranks + 1), host memory, read while encoding
  uint32_t ranks;
  uint32_t rows;
  uint32_t slice_max;
  float* out;  // (rows, vocab) with vocab = starts[ranks]

  template <class Params, class Visit>
  static void ForEachPointer(Params& p, Visit&& visit) {
    visit("gathered", p.gathered, In(size_t{p.ranks} * p.rows, p.slice_max));
    visit("starts", p.starts, Dense(Access::kHost, 1, p.ranks + 1));
    const uint32_t vocab = p.starts[p.ranks];
    visit("out", p.out, p.starts[0] == 0 ? Out(p.rows, vocab) : InOut(p.rows, vocab));
  }
};

// x = cap * tanh(x / cap), in place.
struct SoftCapParams {
  static constexpr std::string_view kName = "SoftCap";

  float* x;
  size_t count;
  float cap;

  template <class Params, class Visit>
  static void ForEachPointer(Params& p, Visit&& visit) {
    visit("x", p.x, InOut(1, p.count));
  }
};

}  // namespace tandem::kernels

#endif  // TANDEM_KERNELS_OPS_LOGITS_H_
