// A block's pieces of a row become weights, 1 for the largest, and what later steps need to know
// of them: the largest of each group, the sum of each piece, and bins of all by size.
#ifndef TANDEM_KERNELS_CUDA_SAMPLING_WEIGH_H_
#define TANDEM_KERNELS_CUDA_SAMPLING_WEIGH_H_

#include <cuda_runtime.h>

#include <cstdint>

#include "kernels/cuda/device/logits.h"
#include "kernels/cuda/device/select.h"
#include "kernels/cuda/sampling/piece_logits.h"
#include "kernels/cuda/sampling/row_filters.h"
#include "kernels/cuda/sampling/sample_row.h"
#include "kernels/cuda/sampling/sample_task.h"
#include "kernels/cuda/sampling/weight_moments.h"

namespace tandem::kernels::cuda {

// The bins of a block's weights, in shared memory; all of it integers, in any order.
template <uint32_t kThreads>
class BlockBins {
 public:
  __device__ BlockBins(const WantedFilters& wanted, const SelectRoom& room)
      : counted_(wanted.begins_with_top_k()), summed_(wanted.begins_with_top_p()), room_(room) {}

  // All threads call it, as Flush, which needs a barrier between it and the last Add.
  __device__ void Clear() const {
    if (!counted_ && !summed_) return;
    for (uint32_t i = threadIdx.x; i < kWeightBins; i += kThreads) {
      room_.low[i] = 0;
      room_.high[i] = 0;
    }
    __syncthreads();
  }
  __device__ void Add(uint32_t bits) const {
    if (bits == 0) return;
    const uint32_t bin = bits >> kFirstDigitShift;
    if (counted_) room_.low.AtomicAdd(bin, 1u);
    if (!summed_) return;
    room_.low.AtomicAdd(bin, SignificandLow(bits));
    room_.high.AtomicAdd(bin, SignificandHigh(bits));
  }
  __device__ void Flush(WeightBins& bins) const {
    if (!counted_ && !summed_) return;
    for (uint32_t i = threadIdx.x; i < kWeightBins; i += kThreads) {
      const uint32_t low = room_.low[i], high = room_.high[i];
      if (low != 0) atomicAdd(&bins.low[i], low);
      if (high != 0) atomicAdd(&bins.high[i], high);
    }
  }

 private:
  const bool counted_;
  const bool summed_;
  const SelectRoom room_;
};

// Weighs the block's pieces; `largest` is the row's largest logit. min_p is applied on the way. All
// threads of a block call it.
template <uint32_t kThreads>
__device__ void WeighPieces(const SampleTask& task, const SampleRow& row, float largest,
                            const SelectRoom& room) {
  const float* const source = row.has_changes() ? row.weights() : row.logits();
  const float temperature = row.wanted().temperature;
  const float floor = row.wanted().min_p > 1.0f ? 1.0f : row.wanted().min_p;
  const uint32_t ids = task.groups * kWarp;
  const BlockBins<kThreads> bins(WantedFilters(row.wanted()), room);
  const bool typical = WantedFilters(row.wanted()).begins_with_typical();
  bins.Clear();
  for (uint32_t piece = row.part(); piece < task.cut.pieces; piece += task.cut.parts) {
    double sum = 0;
    WeightMoments moments;
    PieceLogits<kThreads>(source, piece, task.params.vocab).ForEach([&](uint32_t id, float logit) {
      float weight = ExpOfNegative((logit - largest) / temperature);
      weight = weight >= floor ? weight : 0.0f;
      const uint32_t bits = __float_as_uint(weight);
      const uint32_t most = __reduce_max_sync(kAllLanes, bits);
      if (id < ids) row.weights()[id] = weight;
      if (id < ids && id % kWarp == 0) row.maxima()[id / kWarp] = most;
      bins.Add(bits);
      sum += weight;
      if (typical) moments.Add(weight);
    });
    if (typical) {
      const double moment = BlockSum(moments.moment, room.doubles);
      if (threadIdx.x == 0) row.moments()[piece] = moment;
    }
    sum = BlockSum(sum, room.doubles);  // the last one is also the barrier before Flush
    if (threadIdx.x == 0) row.sums()[piece] = sum;
  }
  bins.Flush(row.bins());
}

}  // namespace tandem::kernels::cuda

#endif  // TANDEM_KERNELS_CUDA_SAMPLING_WEIGH_H_
