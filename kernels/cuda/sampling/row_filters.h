// Which filters a row of Sample has, and the order in which they work on its candidates.
#ifndef TANDEM_KERNELS_CUDA_SAMPLING_ROW_FILTERS_H_
#define TANDEM_KERNELS_CUDA_SAMPLING_ROW_FILTERS_H_

#include <cuda_runtime.h>

#include <cstdint>

#include "kernels/cuda/device/select.h"
#include "kernels/cuda/sampling/candidates.h"
#include "kernels/cuda/sampling/kept_candidates.h"
#include "kernels/cuda/sampling/sample_row.h"
#include "kernels/cuda/sampling/sample_task.h"
#include "kernels/cuda/sampling/typical_filter.h"
#include "kernels/cuda/sampling/weight_moments.h"
#include "kernels/cuda/sampling/xtc_filter.h"
#include "kernels/host/philox.h"

namespace tandem::kernels::cuda {

// min_p is not among them: it needs the largest weight alone.
class WantedFilters {
 public:
  __device__ explicit WantedFilters(const SamplingRow& row) : row_(row) {}

  __device__ bool top_k() const { return row_.top_k > 0; }
  __device__ bool typical() const { return row_.typical_p < 1.0f; }
  __device__ bool top_p() const { return row_.top_p < 1.0f; }
  __device__ bool xtc() const {
    return row_.xtc_probability > 0 &&
           host::UniformDraw(row_.seed, row_.position, host::RandomStream::kXtc) <
               row_.xtc_probability;
  }
  __device__ bool any() const { return top_k() || typical() || top_p() || xtc(); }

  // Whether the first filter is top_k, or is top_p: their candidates are known by bins of weights.
  __device__ bool begins_with_top_k() const { return top_k(); }
  __device__ bool begins_with_top_p() const { return top_p() && !top_k() && !typical(); }
  // The moments of the row's pieces are those of its candidates.
  __device__ bool begins_with_typical() const { return typical() && !top_k(); }

 private:
  const SamplingRow& row_;
};

template <uint32_t kThreads>
class RowFilters {
 public:
  // `keys` has kBlockReduceRoom values.
  __device__ RowFilters(const SampleTask& task, const SampleRow& row, const SelectRoom& room,
                        SharedArray<uint64_t> keys)
      : task_(task),
        of_row_(row),
        row_(row.wanted()),
        wanted_(row.wanted()),
        room_(room),
        keys_(keys),
        selector_(room) {}

  // From the bins of all weights, the least first digit that a weight left by the first filter has;
  // kSelectBins: there are no more than top_k weights.
  __device__ uint32_t FirstDigit() {
    const WeightBins& bins = of_row_.bins();
    if (!wanted_.begins_with_top_k() && !wanted_.begins_with_top_p()) return 0;
    for (uint32_t i = threadIdx.x; i < kSelectBins; i += kThreads) {
      room_.low[i] = i < kWeightBins ? bins.low[i] : 0;
      room_.high[i] = i < kWeightBins ? bins.high[i] : 0;
    }
    return wanted_.begins_with_top_k()
               ? selector_.FirstDigit(NumberGoal{static_cast<double>(row_.top_k)})
               : selector_.FirstDigit(ShareGoal{row_.top_p});
  }

  // Filters weights, in the order of kernels/ops/sample.h. Candidates with a key below the result
  // are dropped, too. `digit` is what FirstDigit gave.
  __device__ uint64_t Filter(const Candidates& candidates, uint32_t digit) {
    const auto bits = [](float weight) { return __float_as_uint(weight); };
    uint64_t least = 0;
    if (wanted_.top_k() && digit < kSelectBins) {
      least = selector_.template Rest<NumberGoal>(candidates, least, bits);
    }
    if (wanted_.typical()) {
      const KeptCandidates<kThreads> kept(candidates, least);
      TypicalFilter<kThreads>(kept, room_).Keep(row_.typical_p, MomentsOf(kept));
    }
    if (wanted_.top_p()) {
      least = wanted_.begins_with_top_p()
                  ? selector_.template Rest<ShareGoal>(candidates, least, bits)
                  : selector_.Reaching(ShareGoal{row_.top_p}, candidates, least, bits);
    }
    if (wanted_.xtc()) {
      DropTopChoices(KeptCandidates<kThreads>(candidates, least), row_.xtc_threshold, room_, keys_);
    }
    return least;
  }

 private:
  __device__ WeightMoments MomentsOf(const KeptCandidates<kThreads>& kept) const {
    WeightMoments mine;
    if (wanted_.begins_with_typical()) {
      for (uint32_t i = threadIdx.x; i < task_.cut.pieces; i += kThreads) {
        mine.Add({of_row_.sums()[i], of_row_.moments()[i]});
      }
    } else {
      kept.ForEach([&](uint32_t, float weight) { mine.Add(weight); });
    }
    return BlockSum(mine, room_.doubles);
  }

  const SampleTask& task_;
  const SampleRow& of_row_;
  const SamplingRow& row_;
  const WantedFilters wanted_;
  const SelectRoom room_;
  const SharedArray<uint64_t> keys_;
  Selector<kThreads> selector_;
};

}  // namespace tandem::kernels::cuda

#endif  // TANDEM_KERNELS_CUDA_SAMPLING_ROW_FILTERS_H_
