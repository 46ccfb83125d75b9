// LogProbs: log-probabilities of some ids.
#ifndef TANDEM_KERNELS_OPS_LOG_PROBS_H_
#define TANDEM_KERNELS_OPS_LOG_PROBS_H_

#include <cstdint>
#include <string_view>

#include "common/base/limits.h"
#include "kernels/ops/array.h"

namespace tandem::kernels {

// The request of one row. Its results are ordered: the sampled id, ids[ids_begin, ids_end), the
// top_n ids of the largest logits (largest first, the lower id on a tie).
struct LogProbsRow {
  int32_t logits_row = 0;
  int32_t sample = -1;  // the sampled id is sampled[sample]; -1: not requested
  int32_t ids_begin = 0;
  int32_t ids_end = 0;
  uint32_t top_n = 0;      // at most kMaxTopLogprobs and vocab
  uint32_t out_begin = 0;  // index of the first result
};

// Log-softmax of whole rows, read at some ids. rank = 1 + how many logits of the row are strictly
// larger. A NaN counts as -inf.
struct LogProbsParams {
  static constexpr std::string_view kName = "LogProbs";

  const float* logits;  // (any, vocab)
  uint32_t vocab;
  const LogProbsRow* rows;  // (count)
  uint32_t count;
  const int32_t* ids;      // all in [0, vocab); may be null if no row names any
  const int32_t* sampled;  // output of Sample; may be null if no row requests it
  uint32_t out_count;      // results of all rows
  int32_t* out_ids;        // (out_count)
  float* out_logprobs;     // (out_count)
  int32_t* out_ranks;      // (out_count)

  template <class Params, class Visit>
  static void ForEachPointer(Params& p, Visit&& visit) {
    visit("logits", p.logits, In(0, p.vocab));
    visit("rows", p.rows, In(p.count));
    visit("ids", p.ids, In(0, 1).Optional());
    visit("sampled", p.sampled, In(0, 1).Optional());
    visit("out_ids", p.out_ids, Out(p.out_count));
    visit("out_logprobs", p.out_logprobs, Out(p.out_count));
    visit("out_ranks", p.out_ranks, Out(p.out_count));
  }
};

}  // namespace tandem::kernels

#endif  // TANDEM_KERNELS_OPS_LOG_PROBS_H_
