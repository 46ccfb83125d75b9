// The results of LogProbs, from what a row's pieces have left; a block per row.
// Floor: 16 bytes per piece, 8 per piece and top id, 4 per piece and other id, and 12 per result.
#include "kernels/cuda/device/launch_order.h"
#include "kernels/cuda/device/logits.h"
#include "kernels/cuda/device/select_key.h"
#include "kernels/cuda/device/warp.h"
#include "kernels/cuda/sampling/log_probs_kernels.h"
#include "kernels/cuda/sampling/log_probs_row.h"
#include "kernels/cuda/sampling/log_probs_task.h"
#include "kernels/cuda/sampling/top_keys.h"

namespace tandem::kernels::cuda {
namespace {

template <uint32_t kThreads>
class ResultWriter {
 public:
  __device__ ResultWriter(const LogProbsTask& task, SharedArena& arena)
      : task_(task),
        row_(task, blockIdx.x),
        top_(arena),
        sums_(arena.Take<double>(kBlockReduceRoom)),
        maxima_(arena.Take<float>(kBlockReduceRoom)) {}
  static constexpr size_t kSharedBytes = TopKeys<kThreads>::kSharedBytes +
                                         SharedBytes<double>(kBlockReduceRoom) +
                                         SharedBytes<float>(kBlockReduceRoom);

  // Every branch around a barrier is the same for all threads of the block.
  __device__ void Write() {
    AddSums();
    WriteIds();
    if (row_.top_n() > 0) WriteTop();
  }

 private:
  static constexpr uint32_t kMostIds =
      kThreads == kFewVocabularyThreads ? kSmallVocabulary : kMostVocabulary;
  static constexpr uint32_t kMostPieces = Blocks(kMostIds, kThreads* kIdsPerThread);
  static constexpr uint32_t kKeys = Blocks(kMostPieces * kMaxTopLogprobs, kThreads);

  __device__ void AddSums() {
    float largest = -INFINITY;
    ForEachSum([&](const PieceSum& one) { largest = max(largest, one.largest); });
    largest_ = BlockMax(largest, maxima_);
    double sum = 0;
    ForEachSum(
        [&](const PieceSum& one) { sum += one.sum * ExpOfNegative(one.largest - largest_); });
    log_sum_ = log(BlockSum(sum, sums_));
  }
  template <typename F>
  __device__ void ForEachSum(F f) const {
    for (uint32_t i = threadIdx.x; i < task_.cut.pieces; i += kThreads) f(row_.sums()[i]);
  }

  // A warp per result.
  __device__ void WriteIds() const {
    const uint32_t lane = threadIdx.x % kWarp, warp = threadIdx.x / kWarp;
    for (uint32_t result = warp; result < row_.num_ids(); result += kThreads / kWarp) {
      uint32_t larger = 0;
      for (uint32_t piece = lane; piece < task_.cut.pieces; piece += kWarp) {
        larger += row_.LargerThan(result)[piece];
      }
      larger = WarpSum(larger);
      if (lane == 0) Put(row_.OutOf(result), row_.IdOf(result), larger);
    }
  }

  __device__ void WriteTop() const {
    const uint32_t count = row_.top_n();
    uint64_t keys[kKeys];
#pragma unroll
    for (uint32_t j = 0; j < kKeys; ++j) {
      const uint32_t i = threadIdx.x + j * kThreads;
      keys[j] = i < task_.cut.pieces * count ? row_.tops()[i] : 0;
    }
    top_.Find(keys, count);
    if (threadIdx.x >= count) return;
    const uint64_t mine = top_[threadIdx.x];
    uint32_t larger = 0;
    for (uint32_t i = 0; i < threadIdx.x; ++i) {
      larger += SelectedBits(top_[i]) > SelectedBits(mine) ? 1 : 0;
    }
    Put(row_.OutOf(row_.num_ids() + threadIdx.x), static_cast<int32_t>(SelectedId(mine)), larger);
  }

  __device__ void Put(uint32_t out, int32_t id, uint32_t larger) const {
    const LogProbsParams& p = task_.params;
    const float logit = row_.LogitOf(id);
    p.out_ids[out] = id;
    // -inf also if no id is possible.
    p.out_logprobs[out] =
        logit == -INFINITY ? logit : static_cast<float>(double{logit} - largest_ - log_sum_);
    p.out_ranks[out] = static_cast<int32_t>(larger) + 1;
  }

  const LogProbsTask& task_;
  const LogProbsTaskRow row_;
  const TopKeys<kThreads> top_;
  const SharedArray<double> sums_;
  const SharedArray<float> maxima_;
  float largest_ = 0;
  double log_sum_ = 0;
};

// One block: ptxas would give it 32 registers, which spill.
template <uint32_t kThreads>
__global__ void __launch_bounds__(kThreads, 1) WriteLogProbsKernel(const LogProbsTask task) {
  FollowEarlierLaunches();
  SharedArena arena;
  ResultWriter<kThreads>(task, arena).Write();
}

}  // namespace

template <uint32_t kThreads>
void EncodeWriteLogProbs(Stream& stream, const LogProbsTask& task) {
  stream.LaunchEarly("log_probs: results", &WriteLogProbsKernel<kThreads>, task.params.count,
                     kThreads, ResultWriter<kThreads>::kSharedBytes, task);
}
template void EncodeWriteLogProbs<kFewVocabularyThreads>(Stream&, const LogProbsTask&);
template void EncodeWriteLogProbs<kManyVocabularyThreads>(Stream&, const LogProbsTask&);

}  // namespace tandem::kernels::cuda
