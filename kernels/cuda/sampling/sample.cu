// Sample: one block per row. Sampling parameters are read on the device, so the grid depends only
// on the number of rows.
//
// Adjusted logits and weights, exp((logit - largest) / temperature), are bit-identical to the
// host's, in scratch; typical_p and XTC set weights to zero (sampling/weight_filters.h); the
// cut-off of top_k and top_p is one key (device/select.h); then a hierarchical search finds where
// the running sum of the remaining weights passes a share of the total. Sums are in double, so the
// id equals the host's except for rounding at boundaries.
// Floor: 4 bytes per logit. A greedy row without adjustments reaches it; with them it also writes
// and reads a copy. Others also write and read weights: once for the search, three to five times
// for each of top_k and top_p, three times for XTC, and up to 54 times for typical_p, mostly from
// cache.
#include "kernels/cuda/device/logits.h"
#include "kernels/cuda/device/select.h"
#include "kernels/cuda/ops.h"
#include "kernels/cuda/sampling/vocabulary.h"
#include "kernels/cuda/sampling/weight_filters.h"
#include "kernels/host/philox.h"
#include "kernels/ops/not_finite.h"

namespace tandem::kernels::cuda {
namespace {

struct SampleTask {
  SampleParams params;
  float* weights;  // (count, stride)
  uint32_t stride;
};

template <uint32_t kThreads>
class RowSampler {
 public:
  __device__ RowSampler(const SampleTask& task, SharedArena& arena)
      : row_(task.params.rows[blockIdx.x]),
        vocab_(task.params.vocab),
        logits_(task.params.logits + static_cast<size_t>(row_.logits_row) * vocab_),
        weights_(task.weights + static_cast<size_t>(blockIdx.x) * task.stride),
        adjustments_(task.params.adjustments +
                     (task.params.adjustments != nullptr ? row_.adjustments_begin : 0)),
        num_adjustments_(static_cast<uint32_t>(row_.adjustments_end - row_.adjustments_begin)),
        room_(arena),
        keys_(arena.Take<uint64_t>(kBlockReduceRoom)) {}
  static constexpr size_t kSharedBytes = kSelectRoomBytes + SharedBytes<uint64_t>(kBlockReduceRoom);

  // Every branch is the same for all threads of the block.
  __device__ uint32_t Draw() {
    uint64_t best = Best(logits_);
    if (best == 0 || best == kUnusable) return static_cast<uint32_t>(kNotFinite);
    const float* source = logits_;
    if (num_adjustments_ > 0) {
      source = Adjust();
      best = Best(source);
      if (best == 0) return FirstNotBanned();
    }
    if (!(row_.temperature > 0)) return SelectedId(best);
    Weigh(source, OfOrderedBits(SelectedBits(best)));
    return Walk(Filter(), host::UniformDraw(row_.seed, row_.position));
  }

 private:
  static constexpr uint64_t kUnusable = ~uint64_t{0};  // larger than every key

  // Copies the logits and adjusts them.
  __device__ const float* Adjust() {
    constexpr float kLargest = 3.40282347e38f;
    ForEach<kThreads>(logits_, vocab_, [&](uint32_t id, float logit) { weights_[id] = logit; });
    __syncthreads();
    for (uint32_t i = threadIdx.x; i < num_adjustments_; i += kThreads) {
      const LogitAdjustment one = adjustments_[i];
      if (one.id < 0 || static_cast<uint32_t>(one.id) >= vocab_) continue;
      float logit = __fadd_rn(weights_[one.id], one.bias);
      logit = logit > 0 ? logit / one.repetition : __fmul_rn(logit, one.repetition);
      logit = __fadd_rn(logit, -one.penalty);
      weights_[one.id] = logit < kLargest ? logit : kLargest;
    }
    __syncthreads();
    return weights_;
  }

  // Filters weights, in the order of kernels/ops/sample.h. Weights with a key below the result are
  // dropped, too.
  __device__ uint64_t Filter() {
    const auto bits = [](float weight) { return __float_as_uint(weight); };
    uint64_t least = 0;
    if (row_.top_k > 0) {
      least = Selector<kThreads, false>(weights_, vocab_, room_).Reaching(row_.top_k, least, bits);
    }
    if (row_.typical_p < 1.0f) FiltersFrom(least).KeepTypical(row_.typical_p);
    if (row_.top_p < 1.0f) {
      least = Selector<kThreads, true>(weights_, vocab_, room_).Reaching(row_.top_p, least, bits);
    }
    if (row_.xtc_probability > 0 &&
        host::UniformDraw(row_.seed, row_.position, host::RandomStream::kXtc) <
            row_.xtc_probability) {
      FiltersFrom(least).DropTopChoices(row_.xtc_threshold);
    }
    return least;
  }
  __device__ WeightFilters<kThreads> FiltersFrom(uint64_t least) const {
    return WeightFilters<kThreads>(weights_, vocab_, least, room_, keys_);
  }

  // The key of the lowest id of the largest logit; 0 if every logit is -inf, kUnusable if one is
  // NaN or +inf.
  __device__ uint64_t Best(const float* logits) {
    uint64_t best = 0;
    ForEach<kThreads>(logits, vocab_, [&](uint32_t id, float logit) {
      uint64_t key = logit > -INFINITY ? SelectKey(OrderedBits(logit), id) : 0;
      if (!(logit < INFINITY)) key = kUnusable;
      best = key > best ? key : best;
    });
    return BlockMax(best, keys_);
  }

  // The lowest id that is not banned, or 0. One more id than there are adjustments suffices.
  __device__ uint32_t FirstNotBanned() {
    uint32_t best = 0;  // the larger, the lower the id
    const uint32_t candidates = num_adjustments_ < vocab_ ? num_adjustments_ + 1 : vocab_;
    for (uint32_t id = threadIdx.x; id < candidates && best == 0; id += kThreads) {
      bool is_banned = false;
      for (uint32_t i = 0; i < num_adjustments_; ++i) {
        const LogitAdjustment one = adjustments_[i];
        is_banned |= one.id == static_cast<int32_t>(id) && one.bias == -INFINITY;
      }
      if (!is_banned) best = kMaxSelectIds - id;
    }
    best = BlockMax(best, room_.integers);
    return best == 0 ? 0 : kMaxSelectIds - best;
  }

  // Logits become weights, 1 for the largest; min_p is applied on the way. `logits` may be the
  // weights' own memory.
  __device__ void Weigh(const float* logits, float largest) {
    const float temperature = row_.temperature;
    const float floor = row_.min_p > 1.0f ? 1.0f : row_.min_p;
    ForEach<kThreads>(logits, vocab_, [&](uint32_t id, float logit) {
      const float weight = ExpOfNegative((logit - largest) / temperature);
      weights_[id] = weight >= floor ? weight : 0.0f;
    });
    __syncthreads();
  }

  __device__ float Kept(uint32_t id, uint64_t least) const {
    const float weight = weights_[id];
    return SelectKey(__float_as_uint(weight), id) >= least ? weight : 0.0f;
  }

  // The part in which the running sum passes the remaining draw.
  struct Progress {
    double left;
    uint32_t at = 0;  // if rounding leaves a remainder: the last non-empty part
    bool inside = false;

    // Parts are passed in order; `index` is this one's.
    __device__ void Pass(double sum, uint32_t index) {
      if (inside || sum == 0) return;
      at = index;
      inside = left < sum;
      if (!inside) left -= sum;
    }
  };

  // The id at which the running sum passes `share` of the total.
  __device__ uint32_t Walk(uint64_t least, double share) {
    constexpr uint32_t kWarps = kThreads / kWarp;
    const uint32_t lane = threadIdx.x % kWarp, warp = threadIdx.x / kWarp;
    uint32_t begin = 0, end = vocab_;
    double left = -1;  // of the sum from `begin` on; negative: not yet computed
    while (end - begin > kWarp) {
      const uint32_t part = (end - begin + kThreads - 1) / kThreads * kWarp;
      const uint32_t from = begin + warp * part;
      const uint32_t to = from + part < end ? from + part : end;
      double sum = 0;
#pragma unroll 8
      for (uint32_t id = from + lane; id < to; id += kWarp) sum += Kept(id, least);
      sum = WarpSum(sum);
      __syncthreads();  // the room's previous sums have been read
      if (lane == 0) room_.doubles[warp] = sum;
      __syncthreads();
      if (left < 0) {
        double total = 0;
        for (uint32_t i = 0; i < kWarps; ++i) total += room_.doubles[i];
        left = share * total;
      }
      Progress progress{left};
      for (uint32_t i = 0; i < kWarps; ++i) progress.Pass(room_.doubles[i], i);
      left = progress.inside ? progress.left : INFINITY;
      begin += progress.at * part;
      end = begin + part < end ? begin + part : end;
    }
    const float mine = begin + lane < end ? Kept(begin + lane, least) : 0.0f;
    if (left < 0) left = share * WarpSum(static_cast<double>(mine));
    Progress progress{left};
    for (uint32_t i = 0; i < kWarp; ++i) progress.Pass(__shfl_sync(kAllLanes, mine, i), i);
    return begin + progress.at;
  }

  const SamplingRow row_;
  const uint32_t vocab_;
  const float* const logits_;
  float* const weights_;
  const LogitAdjustment* const adjustments_;
  const uint32_t num_adjustments_;
  const SelectRoom room_;
  const SharedArray<uint64_t> keys_;
};

template <uint32_t kThreads>
__global__ void __launch_bounds__(kThreads) SampleKernel(const SampleTask task) {
  SharedArena arena;
  const uint32_t drawn = RowSampler<kThreads>(task, arena).Draw();
  if (threadIdx.x == 0) task.params.out[blockIdx.x] = static_cast<int32_t>(drawn);
}

template <uint32_t kThreads>
void Launch(Stream& stream, const SampleTask& task) {
  stream.Launch("sample", &SampleKernel<kThreads>, task.params.count, kThreads,
                RowSampler<kThreads>::kSharedBytes, task);
}

}  // namespace

void EncodeOp(Stream& stream, const SampleParams& params) {
  const uint32_t stride = Blocks(params.vocab, 32) * 32;
  const size_t bytes = static_cast<size_t>(params.count) * stride * sizeof(float);
  auto* const weights = reinterpret_cast<float*>(stream.Scratch(bytes));
  if (!CheckVocabulary(stream, params.vocab, kMaxSelectVocabulary)) return;
  const SampleTask task = {params, weights, stride};
  params.vocab <= kSmallVocabulary ? Launch<kFewVocabularyThreads>(stream, task)
                                   : Launch<kManyVocabularyThreads>(stream, task);
}

}  // namespace tandem::kernels::cuda
