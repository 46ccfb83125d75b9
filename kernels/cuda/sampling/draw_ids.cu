// Draws the id of each row. The first block of a row writes a greedy one; of others all blocks
// weigh their pieces, and the last one to finish filters and draws, or draws and then filters.
// Floor: 8 bytes per logit of a row that is not greedy, its logit read and its weight written; then
// 4 per group of 32 read, and the weights of groups that filters look at.
#include "kernels/cuda/device/launch_order.h"
#include "kernels/cuda/device/logits.h"
#include "kernels/cuda/device/select.h"
#include "kernels/cuda/sampling/candidates.h"
#include "kernels/cuda/sampling/last_part.h"
#include "kernels/cuda/sampling/row_filters.h"
#include "kernels/cuda/sampling/sample_kernels.h"
#include "kernels/cuda/sampling/sample_row.h"
#include "kernels/cuda/sampling/sample_task.h"
#include "kernels/cuda/sampling/walk.h"
#include "kernels/cuda/sampling/weigh.h"
#include "kernels/host/philox.h"
#include "kernels/ops/not_finite.h"

namespace tandem::kernels::cuda {
namespace {

template <uint32_t kThreads>
class RowDrawer {
 public:
  __device__ RowDrawer(const SampleTask& task, SharedArena& arena)
      : task_(task),
        row_(task),
        room_(arena),
        keys_(arena.Take<uint64_t>(kBlockReduceRoom)),
        number_(arena.Take<uint32_t>(1)),
        groups_(arena.Take<uint16_t>(task.groups)) {}
  static size_t SharedBytesOf(const SampleTask& task) {
    return kSelectRoomBytes + SharedBytes<uint64_t>(kBlockReduceRoom) + SharedBytes<uint32_t>(1) +
           SharedBytes<uint16_t>(task.groups);
  }

  // Every branch is the same for all threads of the block.
  __device__ void Draw() const {
    if (threadIdx.x == 0) number_[0] = row_.number();  // seen by all from Best's barriers on
    const PieceBest best = Best();
    if (best.given == 0 || best.given == kUnusableKey) {
      PutByFirst(static_cast<uint32_t>(kNotFinite));
    } else if (best.adjusted == 0) {
      PutByFirst(FirstNotBanned());
    } else if (!(row_.wanted().temperature > 0)) {
      PutByFirst(SelectedId(best.adjusted));
    } else {
      WeighPieces<kThreads>(task_, row_, OfOrderedBits(SelectedBits(best.adjusted)), room_);
      if (IsLastPart(row_.arrived(), task_.cut.parts, room_.integers)) DrawFromWeights();
    }
  }

 private:
  __device__ void Put(uint32_t id) const {
    if (threadIdx.x == 0) Out() = static_cast<int32_t>(id);
  }
  // By the row's number in shared memory: its address would be kept in two registers, which the
  // kernel does not have.
  __device__ int32_t& Out() const { return task_.params.out[number_[0]]; }
  __device__ void PutByFirst(uint32_t id) const {
    if (row_.part() == 0) Put(id);
  }

  // Of the row.
  __device__ PieceBest Best() const {
    PieceBest best = {0, 0};
    for (uint32_t i = threadIdx.x; i < task_.cut.pieces; i += kThreads) {
      const PieceBest one = row_.bests()[i];
      best.given = one.given > best.given ? one.given : best.given;
      best.adjusted = one.adjusted > best.adjusted ? one.adjusted : best.adjusted;
    }
    best.given = BlockMax(best.given, keys_);
    best.adjusted = BlockMax(best.adjusted, keys_);
    return best;
  }

  // The lowest id that is not banned, or 0. Without a mask one more id than there are adjustments
  // suffices.
  __device__ uint32_t FirstNotBanned() const {
    const uint32_t num = row_.num_adjustments(), vocab = task_.params.vocab;
    uint32_t best = 0;  // the larger, the lower the id
    const uint32_t candidates = num < vocab && !row_.wanted().has_mask() ? num + 1 : vocab;
    for (uint32_t id = threadIdx.x; id < candidates && best == 0; id += kThreads) {
      bool is_banned = row_.Masks(id);
      for (uint32_t i = 0; i < num; ++i) {
        const LogitAdjustment one = row_.adjustments()[i];
        is_banned |= one.id == static_cast<int32_t>(id) && one.bias == -INFINITY;
      }
      if (!is_banned) best = kMaxSelectIds - id;
    }
    best = BlockMax(best, room_.integers);
    return best == 0 ? 0 : kMaxSelectIds - best;
  }

  // All weights of the row are written.
  __device__ void DrawFromWeights() const {
    const bool filters = WantedFilters(row_.wanted()).any();
    const bool draws_before = row_.wanted().DrawsBeforeTopP();
    if (!filters || draws_before) Put(DrawUnfiltered());
    if (filters) DrawFiltered(draws_before);
  }

  // `replaces`: an id has been drawn from all, and stays if it is kept.
  __device__ void DrawFiltered(bool replaces) const {
    RowFilters<kThreads> filters(task_, row_, room_, keys_);
    const uint32_t digit = filters.FirstDigit();  // has a barrier: the id is there
    // Of the digit with which top_p's share is reached, some may be kept.
    if (replaces && BitsDrawn() >> kFirstDigitShift > digit) return;
    Candidates candidates(row_.weights(), groups_);
    candidates.Take<kThreads>(row_.maxima(), task_.groups, digit < kSelectBins ? digit : 0,
                              room_.integers);
    const uint64_t least = filters.Filter(candidates, digit);
    if (replaces && Keeps(candidates, least)) return;
    __syncthreads();  // all have read the id drawn
    Walk<kThreads> walk =
        StartWalk(replaces ? host::RandomStream::kAfterTopP : host::RandomStream::kToken);
    Put(candidates.IdOf(walk.Find(0, candidates.size(), [&](uint32_t i) -> double {
      const float weight = candidates[i];
      return IsAtLeast(weight, i, least) ? weight : 0.0f;
    })));
  }

  __device__ uint32_t IdDrawn() const { return static_cast<uint32_t>(Out()); }
  __device__ uint32_t BitsDrawn() const { return __float_as_uint(row_.weights()[IdDrawn()]); }

  // Whether the filters, whose result is `least`, keep the id drawn.
  __device__ bool Keeps(const Candidates& candidates, uint64_t least) const {
    const uint32_t bits = BitsDrawn();
    if (bits != SelectedBits(least)) return bits > SelectedBits(least);
    // Candidates are numbered in order of ids.
    return IdDrawn() <= candidates.IdOf(min(SelectedId(least), candidates.size() - 1));
  }

  __device__ uint32_t DrawUnfiltered() const {
    constexpr uint32_t kPiece = kThreads * kIdsPerThread;
    Walk<kThreads> walk = StartWalk(host::RandomStream::kToken);
    const uint32_t piece =
        walk.Find(0, task_.cut.pieces, [&](uint32_t i) { return row_.sums()[i]; });
    const uint32_t begin = piece * kPiece, end = min(begin + kPiece, task_.params.vocab);
    return walk.Find(begin, end, [&](uint32_t id) -> double { return row_.weights()[id]; });
  }

  __device__ Walk<kThreads> StartWalk(host::RandomStream stream) const {
    return Walk<kThreads>(host::UniformDraw(row_.wanted().seed, row_.wanted().position, stream),
                          room_.doubles);
  }

  const SampleTask& task_;
  const SampleRow row_;
  const SelectRoom room_;
  const SharedArray<uint64_t> keys_;
  const SharedArray<uint32_t> number_;  // of the row
  const SharedArray<uint16_t> groups_;
};

template <uint32_t kThreads>
__global__ void __launch_bounds__(kThreads) DrawIdsKernel(const SampleTask task) {
  FollowEarlierLaunches();
  SharedArena arena;
  RowDrawer<kThreads>(task, arena).Draw();
}

}  // namespace

template <uint32_t kThreads>
void EncodeDrawIds(Stream& stream, const SampleTask& task) {
  stream.LaunchEarly("sample: draw", &DrawIdsKernel<kThreads>, task.params.count * task.cut.parts,
                     kThreads, RowDrawer<kThreads>::SharedBytesOf(task), task);
}
template void EncodeDrawIds<kFewVocabularyThreads>(Stream&, const SampleTask&);
template void EncodeDrawIds<kManyVocabularyThreads>(Stream&, const SampleTask&);

}  // namespace tandem::kernels::cuda
