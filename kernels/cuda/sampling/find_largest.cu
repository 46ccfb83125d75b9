// Adjusts the logits of rows that have adjustments or a mask, and finds the largest logit of each
// piece; makes ready what the next kernel counts in.
// Floor: 4 bytes read per logit; with changes also a copy written and read.
#include "kernels/cuda/device/launch_order.h"
#include "kernels/cuda/device/logits.h"
#include "kernels/cuda/device/select_key.h"
#include "kernels/cuda/sampling/piece_logits.h"
#include "kernels/cuda/sampling/sample_kernels.h"
#include "kernels/cuda/sampling/sample_row.h"
#include "kernels/cuda/sampling/sample_task.h"

namespace tandem::kernels::cuda {
namespace {

template <uint32_t kThreads>
class LargestFinder {
 public:
  __device__ LargestFinder(const SampleTask& task, SharedArena& arena)
      : task_(task), row_(task), keys_(arena.Take<uint64_t>(kBlockReduceRoom)) {}
  static constexpr size_t kSharedBytes = SharedBytes<uint64_t>(kBlockReduceRoom);

  // Every branch is the same for all threads of the block.
  __device__ void Find() const {
    if (row_.part() == 0) ClearCounts();
    if (row_.has_changes()) Copy();
    for (uint32_t piece = row_.part(); piece < task_.cut.pieces; piece += task_.cut.parts) {
      PieceBest best = {};
      best.given = BestOf(row_.logits(), piece);
      best.adjusted = row_.has_changes() ? BestOf(row_.weights(), piece) : best.given;
      if (threadIdx.x == 0) row_.bests()[piece] = best;
    }
  }

 private:
  static constexpr uint32_t kPiece = kThreads * kIdsPerThread;

  __device__ void ClearCounts() const {
    for (uint32_t i = threadIdx.x; i < kWeightBins; i += kThreads) {
      row_.bins().low[i] = 0;
      row_.bins().high[i] = 0;
    }
    if (threadIdx.x == 0) row_.arrived() = 0;
  }

  // Copies this block's pieces, without what the mask lacks, and adjusts them.
  __device__ void Copy() const {
    const uint32_t vocab = task_.params.vocab;
    for (uint32_t piece = row_.part(); piece < task_.cut.pieces; piece += task_.cut.parts) {
      PieceLogits<kThreads>(row_.logits(), piece, vocab).ForEach([&](uint32_t id, float logit) {
        if (id < vocab) row_.weights()[id] = row_.Masks(id) ? -INFINITY : logit;
      });
    }
    __syncthreads();
    for (uint32_t i = threadIdx.x; i < row_.num_adjustments(); i += kThreads) {
      const LogitAdjustment one = row_.adjustments()[i];
      const auto id = static_cast<uint32_t>(one.id);  // not in the vocabulary if negative
      const bool is_mine = id / kPiece % task_.cut.parts == row_.part();
      if (id < vocab && is_mine) Adjust(row_.weights()[id], one);
    }
    __syncthreads();
  }

  __device__ static void Adjust(float& weight, const LogitAdjustment& one) {
    constexpr float kLargest = 3.40282347e38f;
    float logit = __fadd_rn(weight, one.bias);
    logit = logit > 0 ? logit / one.repetition : __fmul_rn(logit, one.repetition);
    logit = __fadd_rn(logit, -one.penalty);
    weight = logit < kLargest ? logit : kLargest;
  }

  // The key of the lowest id of the largest logit of a piece.
  __device__ uint64_t BestOf(const float* logits, uint32_t piece) const {
    uint64_t best = 0;
    PieceLogits<kThreads>(logits, piece, task_.params.vocab).ForEach([&](uint32_t id, float logit) {
      uint64_t key = logit > -INFINITY ? SelectKey(OrderedBits(logit), id) : 0;
      if (!(logit < INFINITY)) key = kUnusableKey;
      best = key > best ? key : best;
    });
    return BlockMax(best, keys_);
  }

  const SampleTask& task_;
  const SampleRow row_;
  const SharedArray<uint64_t> keys_;
};

template <uint32_t kThreads>
__global__ void __launch_bounds__(kThreads) FindLargestKernel(const SampleTask task) {
  FollowEarlierLaunches();
  SharedArena arena;
  LargestFinder<kThreads>(task, arena).Find();
}

}  // namespace

template <uint32_t kThreads>
void EncodeFindLargest(Stream& stream, const SampleTask& task) {
  stream.LaunchEarly("sample: largest", &FindLargestKernel<kThreads>,
                     task.params.count * task.cut.parts, kThreads,
                     LargestFinder<kThreads>::kSharedBytes, task);
}
template void EncodeFindLargest<kFewVocabularyThreads>(Stream&, const SampleTask&);
template void EncodeFindLargest<kManyVocabularyThreads>(Stream&, const SampleTask&);

}  // namespace tandem::kernels::cuda
