// Sample: draws one token per row. Shared by all backends on the host, so that they draw the same.
//
// Weights are exp((logit - largest) / temperature); banned ids have weight 0. min_p drops what
// weighs less than min_p times the largest; top_k keeps the k heaviest; top_p then keeps the
// fewest heaviest whose share of the remaining weight reaches top_p. Among equal weights the lower
// id ranks first. The draw adds kept weights in order of ids until they pass UniformDraw(seed,
// position) times their sum. Temperature 0 takes the lowest id of the largest logit. If a logit is
// NaN or +inf, or every one is -inf, the result is kNotFinite; if all that are not -inf are banned,
// the lowest id that is not banned, or 0.
#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <functional>
#include <limits>

#include "kernels/host/logits_row.h"
#include "kernels/host/ops.h"
#include "kernels/host/philox.h"
#include "kernels/ops/not_finite.h"

namespace tandem::kernels::host {
namespace {

// The order "heavier first, then lower id" as one descending integer. Weights are not negative, so
// their bits order as they do.
uint64_t Key(float weight, uint32_t id) {
  return (uint64_t{std::bit_cast<uint32_t>(weight)} << 32) | (~id & 0xffffffffu);
}
float KeyWeight(uint64_t key) { return std::bit_cast<float>(static_cast<uint32_t>(key >> 32)); }

double SumOfKeys(const uint64_t* keys, size_t n) {
  double sum = 0;
  for (size_t i = 0; i < n; ++i) sum += KeyWeight(keys[i]);
  return sum;
}

// The key at which the heaviest-first running sum of `keys` reaches `target`: quickselect by
// weight.
uint64_t KeyReaching(uint64_t* keys, size_t n, double target) {
  constexpr size_t kSmall = 64;
  double before = 0;  // sum of weights heavier than keys[0, n)
  while (n > kSmall) {
    const uint64_t a = keys[0], b = keys[n / 2], c = keys[n - 1];
    // Keys are distinct, so a median of three leaves at least one on either side.
    const uint64_t pivot = std::max(std::min(a, b), std::min(std::max(a, b), c));
    uint64_t* middle = std::partition(keys, keys + n, [&](uint64_t key) { return key >= pivot; });
    const auto heavier = static_cast<size_t>(middle - keys);
    const double sum = SumOfKeys(keys, heavier);
    if (before + sum >= target) {
      n = heavier;
    } else {
      before += sum;
      keys = middle;
      n -= heavier;
    }
  }
  std::sort(keys, keys + n, std::greater<>());
  for (size_t i = 0; i < n; ++i) {
    before += KeyWeight(keys[i]);
    if (before >= target) return keys[i];
  }
  return keys[n - 1];
}

// Sets to zero the weights dropped by top_k and top_p. `keys` has room for `vocab`.
void KeepHeaviest(const SamplingRow& row, float* weights, uint64_t* keys, uint32_t vocab) {
  size_t n = 0;
  for (uint32_t id = 0; id < vocab; ++id) {
    if (weights[id] > 0) keys[n++] = Key(weights[id], id);
  }
  uint64_t last = 0;  // the lightest key that is kept
  if (row.top_k > 0 && static_cast<size_t>(row.top_k) < n) {
    const auto k = static_cast<size_t>(row.top_k);
    std::nth_element(keys, keys + k - 1, keys + n, std::greater<>());
    n = k;
    last = keys[k - 1];
  }
  if (row.top_p < 1.0f) last = KeyReaching(keys, n, double{row.top_p} * SumOfKeys(keys, n));
  for (uint32_t id = 0; id < vocab; ++id) {
    if (Key(weights[id], id) < last) weights[id] = 0;
  }
}

double SumOfWeights(const float* weights, size_t n) {
  double lanes[4] = {};
  size_t i = 0;
  for (; i + 4 <= n; i += 4) {
    for (size_t j = 0; j < 4; ++j) lanes[j] += weights[i + j];
  }
  for (; i < n; ++i) lanes[0] += weights[i];
  return (lanes[0] + lanes[1]) + (lanes[2] + lanes[3]);
}

// The id at which the running sum passes `share` of the total. REQUIRES: some weight is positive.
int32_t Walk(const float* weights, uint32_t vocab, double share) {
  double left = share * SumOfWeights(weights, vocab);
  constexpr uint32_t kRun = 512;
  int32_t drawn = 0;
  for (uint32_t begin = 0; begin < vocab; begin += kRun) {
    const uint32_t end = std::min(vocab, begin + kRun);
    const double run = SumOfWeights(weights + begin, end - begin);
    if (run == 0) continue;
    const bool inside = left < run;
    for (uint32_t id = begin; id < end; ++id) {
      if (weights[id] == 0) continue;
      drawn = static_cast<int32_t>(id);  // if rounding leaves a remainder: the last one
      if (!inside) continue;
      left -= weights[id];
      if (left < 0) return drawn;
    }
    if (inside) return drawn;
    left -= run;
  }
  return drawn;
}

class RowSampler {
 public:
  RowSampler(const SampleParams& params, const SamplingRow& row, std::byte* scratch)
      : row_(row),
        logits_(params.logits + static_cast<size_t>(row.logits_row) * params.vocab),
        vocab_(params.vocab),
        banned_(params.banned + (params.banned != nullptr ? row.banned_begin : 0)),
        banned_count_(row.banned_end - row.banned_begin),
        keys_(reinterpret_cast<uint64_t*>(scratch)),
        weights_(reinterpret_cast<float*>(keys_ + params.vocab)) {}

  int32_t Draw() {
    if (vocab_ == 0) return 0;
    float largest = LargestOfUsable(logits_, vocab_);
    if (!std::isfinite(largest)) return kNotFinite;
    const bool greedy = !(row_.temperature > 0);
    if (greedy && banned_count_ == 0) return FirstOf(logits_, largest);
    std::memcpy(weights_, logits_, vocab_ * sizeof(float));
    if (banned_count_ > 0) {
      Ban();
      largest = Largest(weights_, vocab_);
      if (largest == kNever) return FirstNotBanned();
    }
    if (greedy) return FirstOf(weights_, largest);
    Weigh(largest);
    if (row_.top_k > 0 || row_.top_p < 1.0f) KeepHeaviest(row_, weights_, keys_, vocab_);
    return Walk(weights_, vocab_, UniformDraw(row_.seed, row_.position));
  }

 private:
  void Ban() {
    for (int32_t i = 0; i < banned_count_; ++i) {
      const int32_t id = banned_[i];
      if (id >= 0 && static_cast<uint32_t>(id) < vocab_) weights_[id] = kNever;
    }
  }

  // The lowest id with that logit.
  int32_t FirstOf(const float* logits, float value) const {
    return static_cast<int32_t>(std::find(logits, logits + vocab_, value) - logits);
  }

  // The lowest id that is not banned, or 0.
  int32_t FirstNotBanned() const {
    for (uint32_t id = 0; id < vocab_; ++id) {
      const auto candidate = static_cast<int32_t>(id);
      if (std::find(banned_, banned_ + banned_count_, candidate) == banned_ + banned_count_)
        return candidate;
    }
    return 0;
  }

  // Logits become weights, 1 for the largest; min_p is applied on the way.
  void Weigh(float largest) {
    const float temperature = row_.temperature;
    const float floor = std::min(row_.min_p, 1.0f);
    float* const weights = weights_;
    for (uint32_t id = 0; id < vocab_; ++id) {
      const float weight = ExpOfNegative((weights[id] - largest) / temperature);
      weights[id] = weight >= floor ? weight : 0.0f;
    }
  }

  const SamplingRow& row_;
  const float* const logits_;
  const uint32_t vocab_;
  const int32_t* const banned_;
  const int32_t banned_count_;
  uint64_t* const keys_;  // (vocab)
  float* const weights_;  // (vocab)
};

void SampleRow(const SampleParams& p, const TaskContext& context) {
  p.out[context.task] = RowSampler(p, p.rows[context.task], context.thread_scratch).Draw();
}

}  // namespace

void EncodeOp(OpList& list, const SampleParams& params) {
  list.ReserveScratch(0, params.vocab * (sizeof(uint64_t) + sizeof(float)));
  list.Add("sample", params.count, &SampleRow, params);
}

}  // namespace tandem::kernels::host
