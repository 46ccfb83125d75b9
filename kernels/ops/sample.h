// Sample: draws one token per row.
#ifndef TANDEM_KERNELS_OPS_SAMPLE_H_
#define TANDEM_KERNELS_OPS_SAMPLE_H_

#include <cstdint>
#include <string_view>

#include "kernels/ops/array.h"

namespace tandem::kernels {

// What becomes of one id's logit first: bias is added, then a positive result is divided by
// `repetition` and any other multiplied with it, then `penalty` is subtracted; each result is
// rounded. Source: vLLM's order (v1/sample/sampler.py: bias, repetition, frequency and presence).
struct LogitAdjustment {
  int32_t id = 0;
  float bias = 0.0f;  // -inf: banned
  float repetition = 1.0f;
  float penalty = 0.0f;
};

// Per-row sampling parameters. They apply in the order mask, adjustments, temperature, min_p,
// top_k, typical_p, top_p, XTC, each to what the one before left. Temperature 0 takes the lowest id
// of the largest adjusted logit, and no other parameter matters to it.
//
// typical_p keeps the fewest ids, those first whose -ln(probability) is closest to its mean, that
// hold this share of the weight (Meister et al., "Locally typical sampling", 2022; llama.cpp's
// typical sampler). XTC, with probability xtc_probability, drops every id of at least the
// probability xtc_threshold except the least likely of them (llama.cpp's sampler of that name); its
// random number is another stream of the same seed and position.
//
// If top_p is set and top_k, typical_p and xtc_probability are not, an id is drawn before top_p,
// and if top_p drops that one, another is drawn from what it keeps, by a random number of a further
// stream. The probabilities are the same, and a draw that top_p keeps need not find out what else
// it keeps.
struct SamplingRow {
  float temperature = 1.0f;
  float top_p = 1.0f;
  float min_p = 0.0f;
  int32_t top_k = 0;  // <= 0: off
  uint64_t seed = 0;
  uint64_t position = 0;  // of the token to draw; with seed, the entire state of the random numbers
  int32_t logits_row = 0;
  int32_t adjustments_begin = 0;  // of this row: adjustments[adjustments_begin, adjustments_end)
  int32_t adjustments_end = 0;    // each id at most once in a row
  float typical_p = 1.0f;         // >= 1: off
  float xtc_probability = 0.0f;   // <= 0: off
  float xtc_threshold = 0.1f;     // > 0.5: off, no two ids are that likely
  // The row's mask, the only ids that may be drawn: a bit for each, the lowest first, in the words
  // of `masks` from here on. Negative: all may be.
  int32_t mask_begin = -1;

  constexpr bool has_mask() const { return mask_begin >= 0; }
  constexpr bool DrawsBeforeTopP() const {
    return top_p < 1.0f && top_k <= 0 && !(typical_p < 1.0f) && !(xtc_probability > 0);
  }
};

struct SampleParams {
  static constexpr std::string_view kName = "Sample";

  const float* logits;  // (any, vocab)
  uint32_t vocab;
  const SamplingRow* rows;  // (count)
  uint32_t count;
  const LogitAdjustment* adjustments;  // may be null if no row has any
  const uint32_t* masks;               // likewise
  int32_t* out;                        // (count)

  template <class Params, class Visit>
  static void ForEachPointer(Params& p, Visit&& visit) {
    visit("logits", p.logits, In(0, p.vocab));
    visit("rows", p.rows, In(p.count));
    visit("adjustments", p.adjustments, In(0, 1).Optional());
    visit("masks", p.masks, In(0, 1).Optional());
    visit("out", p.out, Out(p.count));
  }
};

}  // namespace tandem::kernels

#endif  // TANDEM_KERNELS_OPS_SAMPLE_H_
