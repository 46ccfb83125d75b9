// A call of Sample on the device: how its rows are cut (sampling/pieces.h), and what the kernels of
// a call leave for each other in scratch.
#ifndef TANDEM_KERNELS_CUDA_SAMPLING_SAMPLE_TASK_H_
#define TANDEM_KERNELS_CUDA_SAMPLING_SAMPLE_TASK_H_

#include <cstddef>
#include <cstdint>

#include "kernels/cuda/sampling/pieces.h"
#include "kernels/ops.h"

namespace tandem::kernels::cuda {

// Of a group: neighbours that a warp weighs at once.
inline constexpr uint32_t kGroupIds = 32;
// Weights are at most 1, so that of the first digits of their bits only so many occur.
inline constexpr uint32_t kWeightBins = 512;

// The largest logits of a piece as keys (device/select_key.h); 0 if all of them are -inf,
// kUnusableKey if one is NaN or +inf.
struct PieceBest {
  uint64_t given;
  uint64_t adjusted;
};

// What the weights of a row whose bits begin with the same digit add up to: of rows that begin with
// top_k, how many they are, in `low`; of those that begin with top_p, the sums of the halves of
// their significands (device/select_key.h). Filled by integer atomics, so in any order.
struct WeightBins {
  uint32_t low[kWeightBins];
  uint32_t high[kWeightBins];
};

struct SampleTask {
  SampleParams params;
  RowPieces cut;
  uint32_t groups;  // of a row: runs of kGroupIds ids

  // In scratch, per row.
  float* weights;    // (groups * kGroupIds) adjusted logits, then weights
  uint32_t* maxima;  // (groups) the bits of a group's largest weight
  PieceBest* bests;  // (pieces)
  double* sums;      // (pieces) of weights
  double* moments;  // (pieces) of weights times their logarithms, of rows that begin with typical_p
  WeightBins* bins;
  uint32_t* arrived;  // parts of which all weights are written
};

}  // namespace tandem::kernels::cuda

#endif  // TANDEM_KERNELS_CUDA_SAMPLING_SAMPLE_TASK_H_
