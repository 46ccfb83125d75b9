// LogProbs: one block per row: its largest logit, the sum of exp(logit - largest), ranks of the
// requested ids (several per pass), and the top ids by selection (device/select.h).
// Floor: 4 bytes per logit; each pass reads them again, mostly from cache.
#include "kernels/cuda/device/logits.h"
#include "kernels/cuda/device/select.h"
#include "kernels/cuda/ops.h"
#include "kernels/cuda/sampling/vocabulary.h"

namespace tandem::kernels::cuda {
namespace {

constexpr uint32_t kRanksPerPass = 8;

template <uint32_t kThreads>
class RowReader {
 public:
  __device__ RowReader(const LogProbsParams& params, SharedArena& arena)
      : params_(params),
        row_(params.rows[blockIdx.x]),
        logits_(params.logits + static_cast<size_t>(row_.logits_row) * params.vocab),
        room_(arena),
        floats_(arena.Take<float>(kBlockReduceRoom)),
        top_(arena.Take<uint64_t>(kMaxTopLogprobs)),
        top_count_(arena.Take<uint32_t>(1)) {}
  static constexpr size_t kSharedBytes = kSelectRoomBytes + SharedBytes<float>(kBlockReduceRoom) +
                                         SharedBytes<uint64_t>(kMaxTopLogprobs) +
                                         SharedBytes<uint32_t>(1);

  // Every branch around a barrier is the same for all threads of the block.
  __device__ void Write() {
    float largest = -INFINITY;
    ForEach<kThreads>(logits_, params_.vocab,
                      [&](uint32_t, float logit) { largest = logit > largest ? logit : largest; });
    largest_ = BlockMax(largest, floats_);
    double sum = 0;
    ForEach<kThreads>(logits_, params_.vocab,
                      [&](uint32_t, float logit) { sum += ExpOfNegative(logit - largest_); });
    log_sum_ = log(BlockSum(sum, room_.doubles));

    const uint32_t ids = (row_.sample >= 0 ? 1 : 0) + row_.ids_end - row_.ids_begin;
    for (uint32_t begin = 0; begin < ids; begin += kRanksPerPass) WriteIds(begin, ids);
    if (row_.top_n > 0) WriteTop(row_.out_begin + ids);
  }

 private:
  // The requested id of result `i`, among results that are not the top ids.
  __device__ int32_t IdOf(uint32_t i) const {
    if (row_.sample < 0) return params_.ids[row_.ids_begin + i];
    return i == 0 ? params_.sampled[row_.sample] : params_.ids[row_.ids_begin + i - 1];
  }

  // NaN counts as -inf, and so does no id (kNotFinite).
  __device__ float LogitOf(int32_t id) const {
    if (id < 0) return -INFINITY;
    const float logit = logits_[id];
    return logit == logit ? logit : -INFINITY;
  }

  // Results [begin, begin + kRanksPerPass), fewer at the end.
  __device__ void WriteIds(uint32_t begin, uint32_t end) {
    float logits[kRanksPerPass];
    uint32_t larger[kRanksPerPass];
#pragma unroll
    for (uint32_t j = 0; j < kRanksPerPass; ++j) {
      logits[j] = begin + j < end ? LogitOf(IdOf(begin + j)) : INFINITY;
      larger[j] = 0;
    }
    ForEach<kThreads>(logits_, params_.vocab, [&](uint32_t, float logit) {
#pragma unroll
      for (uint32_t j = 0; j < kRanksPerPass; ++j) larger[j] += logit > logits[j] ? 1 : 0;
    });
#pragma unroll
    for (uint32_t j = 0; j < kRanksPerPass; ++j) {
      const uint32_t before = BlockSum(larger[j], room_.integers);
      if (threadIdx.x == 0 && begin + j < end) {
        Put(row_.out_begin + begin + j, IdOf(begin + j), logits[j], before);
      }
    }
  }

  __device__ void WriteTop(uint32_t out) {
    const auto bits = [](float logit) { return OrderedBits(logit); };
    const uint64_t least = Selector<kThreads>(room_).Reaching(
        NumberGoal{static_cast<double>(row_.top_n)}, logits_, params_.vocab, 0, bits);
    if (threadIdx.x == 0) top_count_[0] = 0;
    __syncthreads();
    ForEach<kThreads>(logits_, params_.vocab, [&](uint32_t id, float logit) {
      const uint64_t key = SelectKey(OrderedBits(logit), id);
      if (key >= least) top_[top_count_.AtomicAdd(0, 1u)] = key;
    });
    __syncthreads();
    if (threadIdx.x >= row_.top_n) return;
    const uint64_t mine = top_[threadIdx.x];
    uint32_t place = 0, larger = 0;
    for (uint32_t i = 0; i < row_.top_n; ++i) {
      const uint64_t key = top_[i];
      place += key > mine ? 1 : 0;
      larger += SelectedBits(key) > SelectedBits(mine) ? 1 : 0;
    }
    const auto id = static_cast<int32_t>(SelectedId(mine));
    Put(out + place, id, LogitOf(id), larger);
  }

  __device__ void Put(uint32_t out, int32_t id, float logit, uint32_t larger) const {
    params_.out_ids[out] = id;
    // -inf also if no id is possible.
    params_.out_logprobs[out] =
        logit == -INFINITY ? logit : static_cast<float>(double{logit} - largest_ - log_sum_);
    params_.out_ranks[out] = static_cast<int32_t>(larger) + 1;
  }

  const LogProbsParams& params_;
  const LogProbsRow row_;
  const float* const logits_;
  const SelectRoom room_;
  const SharedArray<float> floats_;
  const SharedArray<uint64_t> top_;
  const SharedArray<uint32_t> top_count_;
  float largest_ = 0;
  double log_sum_ = 0;
};

template <uint32_t kThreads>
__global__ void __launch_bounds__(kThreads) LogProbsKernel(const LogProbsParams p) {
  SharedArena arena;
  RowReader<kThreads>(p, arena).Write();
}

template <uint32_t kThreads>
void Launch(Stream& stream, const LogProbsParams& params) {
  stream.Launch("log_probs", &LogProbsKernel<kThreads>, params.count, kThreads,
                RowReader<kThreads>::kSharedBytes, params);
}

}  // namespace

void EncodeOp(Stream& stream, const LogProbsParams& params) {
  if (!CheckVocabulary(stream, params.vocab, kMaxSelectVocabulary)) return;
  params.vocab <= kSmallVocabulary ? Launch<kFewVocabularyThreads>(stream, params)
                                   : Launch<kManyVocabularyThreads>(stream, params);
}

}  // namespace tandem::kernels::cuda
