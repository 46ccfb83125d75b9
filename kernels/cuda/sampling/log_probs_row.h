// A row of a call of LogProbs (sampling/log_probs_task.h), on the device.
#ifndef TANDEM_KERNELS_CUDA_SAMPLING_LOG_PROBS_ROW_H_
#define TANDEM_KERNELS_CUDA_SAMPLING_LOG_PROBS_ROW_H_

#include <cuda_runtime.h>

#include <cstddef>
#include <cstdint>

#include "kernels/cuda/sampling/log_probs_task.h"

namespace tandem::kernels::cuda {

// Results that are not top ids come first, and are numbered from 0.
class LogProbsTaskRow {
 public:
  __device__ LogProbsTaskRow(const LogProbsTask& task, uint32_t row)
      : task_(task), row_(row), wanted_(task.params.rows[row]) {}

  __device__ const float* logits() const {
    return task_.params.logits + static_cast<size_t>(wanted_.logits_row) * task_.params.vocab;
  }
  __device__ uint32_t num_ids() const {
    return (has_sample() ? 1 : 0) + static_cast<uint32_t>(wanted_.ids_end - wanted_.ids_begin);
  }
  __device__ uint32_t top_n() const { return wanted_.top_n; }
  __device__ uint32_t OutOf(uint32_t result) const { return wanted_.out_begin + result; }

  __device__ int32_t IdOf(uint32_t result) const {
    if (result == 0 && has_sample()) return task_.params.sampled[wanted_.sample];
    return task_.params.ids[wanted_.ids_begin + result - (has_sample() ? 1 : 0)];
  }
  // NaN counts as -inf, and so does no id (kNotFinite).
  __device__ float LogitOf(int32_t id) const {
    if (id < 0) return -INFINITY;
    const float logit = logits()[id];
    return logit == logit ? logit : -INFINITY;
  }

  // What the row's pieces leave: (pieces), (pieces, top_n), and (pieces) of a result.
  __device__ PieceSum* sums() const { return task_.sums + Pieces(row_); }
  __device__ uint64_t* tops() const { return task_.tops + Pieces(row_) * kMaxTopLogprobs; }
  __device__ uint32_t* LargerThan(uint32_t result) const {
    return task_.larger + Pieces(OutOf(result));
  }

 private:
  __device__ bool has_sample() const { return wanted_.sample >= 0; }
  __device__ size_t Pieces(uint32_t count) const {
    return static_cast<size_t>(count) * task_.cut.pieces;
  }

  const LogProbsTask& task_;
  const uint32_t row_;
  const LogProbsRow wanted_;
};

}  // namespace tandem::kernels::cuda

#endif  // TANDEM_KERNELS_CUDA_SAMPLING_LOG_PROBS_ROW_H_
