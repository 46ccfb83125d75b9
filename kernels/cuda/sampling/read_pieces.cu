// What LogProbs needs of each piece of a row: its sum of exp(logit - largest), how many logits are
// larger than those of the requested ids, and its top ids.
// Floor: 4 bytes per logit.
#include "kernels/cuda/device/launch_order.h"
#include "kernels/cuda/device/logits.h"
#include "kernels/cuda/device/select_key.h"
#include "kernels/cuda/device/warp.h"
#include "kernels/cuda/sampling/log_probs_kernels.h"
#include "kernels/cuda/sampling/log_probs_row.h"
#include "kernels/cuda/sampling/log_probs_task.h"
#include "kernels/cuda/sampling/piece_logits.h"
#include "kernels/cuda/sampling/top_keys.h"

namespace tandem::kernels::cuda {
namespace {

constexpr uint32_t kIdsPerPass = 32;

template <uint32_t kThreads>
class PieceReader {
 public:
  using Logits = PieceLogits<kThreads>;

  __device__ PieceReader(const LogProbsTask& task, SharedArena& arena)
      : task_(task),
        row_(task, blockIdx.x / task.cut.parts),
        top_(arena),
        sums_(arena.Take<double>(kBlockReduceRoom)),
        maxima_(arena.Take<float>(kBlockReduceRoom)),
        asked_(arena.Take<float>(kIdsPerPass)),
        larger_(arena.Take<uint32_t>(kIdsPerPass)) {}
  static constexpr size_t kSharedBytes =
      TopKeys<kThreads>::kSharedBytes + SharedBytes<double>(kBlockReduceRoom) +
      SharedBytes<float>(kBlockReduceRoom) + SharedBytes<float>(kIdsPerPass) +
      SharedBytes<uint32_t>(kIdsPerPass);

  // Every branch around a barrier is the same for all threads of the block.
  __device__ void Read() const {
    const RowPieces& cut = task_.cut;
    for (uint32_t piece = blockIdx.x % cut.parts; piece < cut.pieces; piece += cut.parts) {
      const Logits logits(row_.logits(), piece, task_.params.vocab);
      Sum(logits, piece);
      for (uint32_t begin = 0; begin < row_.num_ids(); begin += kIdsPerPass) {
        CountLarger(logits, piece, begin, min(begin + kIdsPerPass, row_.num_ids()));
      }
      if (row_.top_n() > 0) FindTop(logits, piece);
    }
  }

 private:
  __device__ void Sum(const Logits& logits, uint32_t piece) const {
    float largest = -INFINITY;
    logits.ForEach([&](uint32_t, float logit) { largest = logit > largest ? logit : largest; });
    largest = BlockMax(largest, maxima_);
    double sum = 0;
    logits.ForEach([&](uint32_t, float logit) { sum += ExpOfNegative(logit - largest); });
    sum = BlockSum(sum, sums_);
    if (threadIdx.x == 0) row_.sums()[piece] = {sum, largest};
  }

  // For the results [begin, end).
  __device__ void CountLarger(const Logits& logits, uint32_t piece, uint32_t begin,
                              uint32_t end) const {
    const uint32_t mine = begin + threadIdx.x;
    if (mine < end) {
      asked_[threadIdx.x] = row_.LogitOf(row_.IdOf(mine));
      larger_[threadIdx.x] = 0;
    }
    __syncthreads();
    for (uint32_t i = 0; i < end - begin; ++i) {
      const float asked = asked_[i];
      uint32_t larger = 0;
      logits.ForEach([&](uint32_t, float logit) {
        larger += static_cast<uint32_t>(__popc(__ballot_sync(kAllLanes, logit > asked)));
      });
      if (threadIdx.x % kWarp == 0) larger_.AtomicAdd(i, larger);
    }
    __syncthreads();
    if (mine < end) row_.LargerThan(mine)[piece] = larger_[threadIdx.x];
  }

  // Ids beyond the vocabulary may be among them, but come last in the row.
  __device__ void FindTop(const Logits& logits, uint32_t piece) const {
    uint64_t keys[kIdsPerThread];
#pragma unroll
    for (uint32_t j = 0; j < kIdsPerThread; ++j) {
      keys[j] = SelectKey(OrderedBits(logits[j]), logits.IdOf(j));
    }
    top_.Find(keys, row_.top_n());
    if (threadIdx.x < row_.top_n()) {
      row_.tops()[piece * row_.top_n() + threadIdx.x] = top_[threadIdx.x];
    }
  }

  const LogProbsTask& task_;
  const LogProbsTaskRow row_;
  const TopKeys<kThreads> top_;
  const SharedArray<double> sums_;
  const SharedArray<float> maxima_;
  const SharedArray<float> asked_;      // (kIdsPerPass) logits of the requested ids
  const SharedArray<uint32_t> larger_;  // (kIdsPerPass) than those
};

template <uint32_t kThreads>
__global__ void __launch_bounds__(kThreads) ReadPiecesKernel(const LogProbsTask task) {
  FollowEarlierLaunches();
  SharedArena arena;
  PieceReader<kThreads>(task, arena).Read();
}

}  // namespace

template <uint32_t kThreads>
void EncodeReadPieces(Stream& stream, const LogProbsTask& task) {
  stream.LaunchEarly("log_probs: pieces", &ReadPiecesKernel<kThreads>,
                     task.params.count * task.cut.parts, kThreads,
                     PieceReader<kThreads>::kSharedBytes, task);
}
template void EncodeReadPieces<kFewVocabularyThreads>(Stream&, const LogProbsTask&);
template void EncodeReadPieces<kManyVocabularyThreads>(Stream&, const LogProbsTask&);

}  // namespace tandem::kernels::cuda
