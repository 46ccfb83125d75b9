// Sample: draws one token per row. Shared by all backends on the host, so that they draw the same.
//
// Logits are adjusted, to at most the largest float, and ids that a mask lacks are banned, as those
// with a bias of -inf; weights are exp((logit - largest) / temperature), and banned ids have
// weight 0. min_p drops what weighs less than min_p times the largest; the other filters are in
// sample_filters.h. A draw adds kept weights in order of ids until they pass a uniform random
// number of (seed, position) times their sum. Temperature 0 takes the lowest id of the largest
// adjusted logit. If a logit is NaN or +inf, or every one is -inf, the result is kNotFinite; if all
// that are not -inf are banned, the lowest id that is not banned, or 0.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>

#include "kernels/host/logits_row.h"
#include "kernels/host/ops.h"
#include "kernels/host/philox.h"
#include "kernels/host/run_sums.h"
#include "kernels/host/sample_filters.h"
#include "kernels/host/vocabulary_loops.h"
#include "kernels/ops/not_finite.h"

namespace tandem::kernels::host {
namespace {

// So many keys are sorted by id in less time than a pass over all weights takes.
constexpr size_t kFewKeys = 512;

// Where sums begin in scratch, in doubles: behind a key and a weight of each id.
size_t SumsAt(uint32_t vocab) { return size_t{vocab} + (size_t{vocab} + 1) / 2; }

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
        mask_(row.has_mask() ? params.masks + row.mask_begin : nullptr),
        keys_(reinterpret_cast<uint64_t*>(scratch)),
        weights_(reinterpret_cast<float*>(keys_ + params.vocab)),
        sums_(loops, weights_, vocab_, reinterpret_cast<double*>(scratch) + SumsAt(params.vocab)) {}

  int32_t Draw() {
    if (vocab_ == 0) return 0;
    float largest = loops_.largest(logits_, vocab_);
    if (!std::isfinite(largest)) return kNotFinite;
    const bool greedy = !(row_.temperature > 0);
    const bool changes = num_adjustments_ > 0 || mask_ != nullptr;
    if (greedy && !changes) return FirstOf(logits_, largest);
    const float* adjusted = logits_;
    if (changes) {
      adjusted = weights_;
      Adjust();
      if (mask_ != nullptr) Mask();
      largest = Largest(weights_, vocab_);
      if (largest == kNever) return FirstNotBanned();
      if (greedy) return FirstOf(weights_, largest);
    }
    Weigh(adjusted, largest);
    if (!row_.DrawsBeforeTopP()) return DrawFiltered(RandomStream::kToken);
    const int32_t id = sums_.Draw(RandomNumber(RandomStream::kToken), kKeepsAll);
    if (sums_.TopPKeeps(static_cast<uint32_t>(id), row_.top_p)) return id;
    return DrawFiltered(RandomStream::kAfterTopP);
  }

 private:
  double RandomNumber(RandomStream stream) const {
    return UniformDraw(row_.seed, row_.position, stream);
  }

  int32_t DrawFiltered(RandomStream stream) {
    const uint64_t last = Filter();
    return sums_.Draw(RandomNumber(stream), last);
  }

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

  // Bans what the mask lacks.
  void Mask() {
    for (uint32_t begin = 0; begin < vocab_; begin += 32) {
      if (mask_[begin / 32] == ~0u) continue;
      const uint32_t end = std::min(vocab_, begin + 32);
      for (uint32_t id = begin; id < end; ++id) {
        if (Masks(id)) weights_[id] = kNever;
      }
    }
  }
  bool Masks(uint32_t id) const {
    return mask_ != nullptr && (mask_[id / 32] >> (id % 32) & 1) == 0;
  }

  // Weights, 1 for the largest, and their sums; min_p is applied on the way.
  void Weigh(const float* logits, float largest) {
    const float floor = std::min(row_.min_p, 1.0f);
    for (uint32_t begin = 0; begin < vocab_; begin += RunSums::kRun) {
      const uint32_t count = std::min(vocab_ - begin, RunSums::kRun);
      loops_.weigh(logits + begin, count, largest, row_.temperature, floor, weights_ + begin);
      sums_.Add(begin);
    }
  }

  // Leaves the sums of what is kept: ids with a positive weight up to the key that it returns.
  uint64_t Filter() {
    const bool typical = row_.typical_p < 1.0f;
    const Heaviest kept = FindHeaviest(loops_, row_.top_k, typical ? 1.0f : row_.top_p, weights_,
                                       sums_.Total(), keys_, vocab_);
    const bool drops_top_choices =
        row_.xtc_probability > 0 && RandomNumber(RandomStream::kXtc) < row_.xtc_probability;
    if (typical || drops_top_choices) {
      KeepUpTo(loops_, kept.last, weights_, vocab_);
      if (typical) FilterTypical();
      if (drops_top_choices) DropTopChoices(loops_, row_.xtc_threshold, weights_, vocab_);
      sums_.AddAll();
      return kKeepsAll;
    }
    if (kept.last == kKeepsAll) return kKeepsAll;
    if (kept.gathered > 0 && kept.gathered <= kFewKeys) {
      sums_.AddGathered(keys_, kept.gathered, kept.last);
    } else {
      sums_.AddUpTo(kept.last);
    }
    return kept.last;
  }

  void FilterTypical() {
    KeepTypical(row_.typical_p, weights_, keys_, vocab_);
    const double total = loops_.sum(weights_, vocab_, 0);
    const Heaviest kept = FindHeaviest(loops_, 0, row_.top_p, weights_, total, keys_, vocab_);
    KeepUpTo(loops_, kept.last, weights_, vocab_);
  }

  // The lowest id with that logit.
  int32_t FirstOf(const float* logits, float value) const {
    return static_cast<int32_t>(loops_.first(logits, vocab_, value));
  }

  // The lowest id that is not banned, or 0.
  int32_t FirstNotBanned() const {
    for (uint32_t id = 0; id < vocab_; ++id) {
      const auto bans = [&](const LogitAdjustment& one) {
        return one.id == static_cast<int32_t>(id) && one.bias == kNever;
      };
      if (!Masks(id) && std::none_of(adjustments_, adjustments_ + num_adjustments_, bans)) {
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
  const uint32_t* const mask_;  // null: none
  uint64_t* const keys_;        // (vocab)
  float* const weights_;        // (vocab)
  RunSums sums_;
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
  list.ReserveScratch(0, (SumsAt(params.vocab) + RunSums::CountOf(params.vocab)) * sizeof(double));
  list.Add("sample", params.count, &SampleRow, SampleTask{params, &loops});
}

void EncodeOp(OpList& list, const SampleParams& params) {
  EncodeSample(list, params, baseline::kVocabularyLoops);
}

}  // namespace tandem::kernels::host
