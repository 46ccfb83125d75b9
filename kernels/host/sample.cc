// Sample: draws one token per row. Shared by all backends on the host, so that they draw the same.
//
// Logits are adjusted, to at most the largest float; weights are exp((logit - largest) /
// temperature), and banned ids have weight 0. min_p drops what weighs less than min_p times the
// largest; the other filters are in sample_filters.h. The draw adds kept weights in order of ids
// until they pass UniformDraw(seed, position) times their sum. Temperature 0 takes the lowest id of
// the largest adjusted logit. If a logit is NaN or +inf, or every one is -inf, the result is
// kNotFinite; if all that are not -inf are banned, the lowest id that is not banned, or 0.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>

#include "kernels/host/logits_row.h"
#include "kernels/host/ops.h"
#include "kernels/host/philox.h"
#include "kernels/host/sample_filters.h"
#include "kernels/host/vocabulary_loops.h"
#include "kernels/ops/not_finite.h"

namespace tandem::kernels::host {
namespace {

// The id at which the running sum passes `share` of the total. `sums` has room for one per kRun
// weights. REQUIRES: some weight is positive.
int32_t Walk(const VocabularyLoops& loops, const float* weights, uint32_t vocab, double share,
             double* sums) {
  constexpr uint32_t kRun = 512;
  const auto end_of = [=](uint32_t begin) { return std::min(vocab - begin, kRun) + begin; };
  double total = 0;
  for (uint32_t begin = 0; begin < vocab; begin += kRun) {
    total += sums[begin / kRun] = loops.sum(weights + begin, end_of(begin) - begin, 0);
  }
  // The run where that is; if rounding leaves a remainder, the last one's last id.
  double left = share * total;
  uint32_t begin = 0;
  bool inside = false;
  for (uint32_t i = 0; i * kRun < vocab && !inside; ++i) {
    if (sums[i] == 0) continue;
    begin = i * kRun;
    inside = left < sums[i];
    if (!inside) left -= sums[i];
  }
  int32_t drawn = 0;
  for (uint32_t id = begin; id < end_of(begin); ++id) {
    if (weights[id] == 0) continue;
    drawn = static_cast<int32_t>(id);
    left -= weights[id];
    if (inside && left < 0) break;
  }
  return drawn;
}

class RowSampler {
 public:
  RowSampler(const VocabularyLoops& loops, const SampleParams& params, const SamplingRow& row,
             std::byte* scratch)
      : loops_(loops),
        row_(row),
        logits_(params.logits + static_cast<size_t>(row.logits_row) * params.vocab),
        vocab_(params.vocab),
        adjustments_(params.adjustments +
                     (params.adjustments != nullptr ? row.adjustments_begin : 0)),
        num_adjustments_(row.adjustments_end - row.adjustments_begin),
        keys_(reinterpret_cast<uint64_t*>(scratch)),
        weights_(reinterpret_cast<float*>(keys_ + params.vocab)) {}

  int32_t Draw() {
    if (vocab_ == 0) return 0;
    float largest = loops_.largest(logits_, vocab_);
    if (!std::isfinite(largest)) return kNotFinite;
    const bool greedy = !(row_.temperature > 0);
    if (greedy && num_adjustments_ == 0) return FirstOf(logits_, largest);
    const float* adjusted = logits_;
    if (num_adjustments_ > 0) {
      adjusted = weights_;
      Adjust();
      largest = Largest(weights_, vocab_);
      if (largest == kNever) return FirstNotBanned();
      if (greedy) return FirstOf(weights_, largest);
    }
    // 1 for the largest; min_p is applied on the way.
    loops_.weigh(adjusted, vocab_, largest, row_.temperature, std::min(row_.min_p, 1.0f), weights_);
    Filter();
    return Walk(loops_, weights_, vocab_, UniformDraw(row_.seed, row_.position),
                reinterpret_cast<double*>(keys_));
  }

 private:
  void Adjust() {
    std::memcpy(weights_, logits_, vocab_ * sizeof(float));
    for (int32_t i = 0; i < num_adjustments_; ++i) {
      const LogitAdjustment& one = adjustments_[i];
      if (one.id < 0 || static_cast<uint32_t>(one.id) >= vocab_) continue;
      float& logit = weights_[one.id];
      logit += one.bias;
      logit = logit > 0 ? logit / one.repetition : logit * one.repetition;
      logit = std::min(logit - one.penalty, std::numeric_limits<float>::max());
    }
  }

  void Filter() {
    const bool typical = row_.typical_p < 1.0f;
    KeepHeaviest(loops_, row_.top_k, typical ? 1.0f : row_.top_p, weights_, keys_, vocab_);
    if (typical) {
      KeepTypical(row_.typical_p, weights_, keys_, vocab_);
      KeepHeaviest(loops_, 0, row_.top_p, weights_, keys_, vocab_);
    }
    if (row_.xtc_probability > 0 &&
        UniformDraw(row_.seed, row_.position, RandomStream::kXtc) < row_.xtc_probability) {
      DropTopChoices(loops_, row_.xtc_threshold, weights_, vocab_);
    }
  }

  // The lowest id with that logit.
  int32_t FirstOf(const float* logits, float value) const {
    return static_cast<int32_t>(std::find(logits, logits + vocab_, value) - logits);
  }

  // The lowest id that is not banned, or 0.
  int32_t FirstNotBanned() const {
    for (uint32_t id = 0; id < vocab_; ++id) {
      const auto bans = [&](const LogitAdjustment& one) {
        return one.id == static_cast<int32_t>(id) && one.bias == kNever;
      };
      if (std::none_of(adjustments_, adjustments_ + num_adjustments_, bans)) {
        return static_cast<int32_t>(id);
      }
    }
    return 0;
  }

  const VocabularyLoops& loops_;
  const SamplingRow& row_;
  const float* const logits_;
  const uint32_t vocab_;
  const LogitAdjustment* const adjustments_;
  const int32_t num_adjustments_;
  uint64_t* const keys_;  // (vocab)
  float* const weights_;  // (vocab)
};

struct SampleTask {
  SampleParams params;
  const VocabularyLoops* loops;
};

void SampleRow(const SampleTask& task, const TaskContext& context) {
  const SampleParams& p = task.params;
  p.out[context.task] =
      RowSampler(*task.loops, p, p.rows[context.task], context.thread_scratch).Draw();
}

}  // namespace

void EncodeSample(OpList& list, const SampleParams& params, const VocabularyLoops& loops) {
  list.ReserveScratch(0, params.vocab * (sizeof(uint64_t) + sizeof(float)));
  list.Add("sample", params.count, &SampleRow, SampleTask{params, &loops});
}

void EncodeOp(OpList& list, const SampleParams& params) {
  EncodeSample(list, params, baseline::kVocabularyLoops);
}

}  // namespace tandem::kernels::host
