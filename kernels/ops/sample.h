// Sample: draws one token per row.
#ifndef TANDEM_KERNELS_OPS_SAMPLE_H_
#define TANDEM_KERNELS_OPS_SAMPLE_H_

#include <cstdint>
#include <string_view>

#include "kernels/ops/array.h"

namespace tandem::kernels {

// Per-row sampling parameters. Filters apply in the order temperature, min_p, top_k, top_p.
// Temperature 0 takes the lowest id of the largest logit.
struct SamplingRow {
  float temperature = 1.0f;
  float top_p = 1.0f;
  float min_p = 0.0f;
  int32_t top_k = 0;  // <= 0: off
  uint64_t seed = 0;
  uint64_t position = 0;  // of the token to draw; with seed, the entire state of the random numbers
  int32_t logits_row = 0;
  int32_t banned_begin = 0;  // ids banned for this row: banned[banned_begin, banned_end)
  int32_t banned_end = 0;
  int32_t reserved = 0;
};

struct SampleParams {
  static constexpr std::string_view kName = "Sample";

  const float* logits;  // (any, vocab)
  uint32_t vocab;
  const SamplingRow* rows;  // (count)
  uint32_t count;
  const int32_t* banned;  // ids, may be null if no row bans any
  int32_t* out;           // (count)

  template <class Params, class Visit>
  static void ForEachPointer(Params& p, Visit&& visit) {
    visit("logits", p.logits, In(0, p.vocab));
    visit("rows", p.rows, In(p.count));
    visit("banned", p.banned, In(0, 1).Optional());
    visit("out", p.out, Out(p.count));
  }
};

}  // namespace tandem::kernels

#endif  // TANDEM_KERNELS_OPS_SAMPLE_H_
