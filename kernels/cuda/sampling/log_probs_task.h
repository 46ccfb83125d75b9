// A call of LogProbs: how its rows are cut (sampling/pieces.h), and what their pieces leave in
// scratch.
#ifndef TANDEM_KERNELS_CUDA_SAMPLING_LOG_PROBS_TASK_H_
#define TANDEM_KERNELS_CUDA_SAMPLING_LOG_PROBS_TASK_H_

#include <cstdint>

#include "kernels/cuda/sampling/pieces.h"
#include "kernels/ops.h"

namespace tandem::kernels::cuda {

// Of a piece: its largest logit, and the sum of exp(logit - largest).
struct PieceSum {
  double sum;
  float largest;
};

struct LogProbsTask {
  LogProbsParams params;
  RowPieces cut;

  // In scratch.
  PieceSum* sums;    // (count, pieces)
  uint64_t* tops;    // (count, pieces * kMaxTopLogprobs) keys of top_n ids of each piece
  uint32_t* larger;  // (out_count, pieces) logits larger than a result's; none for top ids
};

}  // namespace tandem::kernels::cuda

#endif  // TANDEM_KERNELS_CUDA_SAMPLING_LOG_PROBS_TASK_H_
