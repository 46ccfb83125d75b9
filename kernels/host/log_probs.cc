// LogProbs: log-softmax of whole rows, read at some ids. Shared by all backends on the host.
//
// Three kinds of passes over a row: its largest logit; the sum of exp(logit - largest) in double;
// and, for every requested id, how many logits are larger. The top ids are collected in a short
// sorted list.
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>

#include "kernels/host/logits_row.h"
#include "kernels/host/ops.h"

namespace tandem::kernels::host {
namespace {

// The sum of exp(x - largest) over a row. Runs are summed in float lanes, and added up in double.
double SumOfExp(const float* x, size_t n, float largest) {
  constexpr size_t kRun = 256;
  constexpr size_t kLanes = 16;
  double sum = 0;
  for (size_t begin = 0; begin < n; begin += kRun) {
    const size_t end = std::min(n, begin + kRun);
    float lanes[kLanes] = {};
    size_t i = begin;
    for (; i + kLanes <= end; i += kLanes) {
      for (size_t j = 0; j < kLanes; ++j) lanes[j] += ExpOfNegative(x[i + j] - largest);
    }
    for (; i < end; ++i) lanes[0] += ExpOfNegative(x[i] - largest);
    for (float lane : lanes) sum += lane;
  }
  return sum;
}

int32_t CountLarger(const float* x, uint32_t n, float value) {
  int32_t larger = 0;
  for (uint32_t i = 0; i < n; ++i) larger += x[i] > value ? 1 : 0;
  return larger;
}

// NaN counts as -inf.
float Sane(float logit) { return std::isnan(logit) ? kNever : logit; }

class RowReader {
 public:
  RowReader(const LogProbsParams& params, const LogProbsRow& row)
      : params_(params),
        row_(row),
        logits_(params.logits + static_cast<size_t>(row.logits_row) * params.vocab),
        out_(row.out_begin) {
    largest_ = Largest(logits_, params.vocab);
    log_sum_ = std::log(SumOfExp(logits_, params.vocab, largest_));
  }

  void Write() {
    if (row_.sample >= 0) WriteId(params_.sampled[row_.sample]);
    for (int32_t i = row_.ids_begin; i < row_.ids_end; ++i) WriteId(params_.ids[i]);
    WriteTop();
  }

 private:
  void WriteId(int32_t id) {
    // No id was sampled (kNotFinite): there is no finite logit.
    const float logit = id < 0 ? kNever : Sane(logits_[id]);
    Put(id, logit, 1 + CountLarger(logits_, params_.vocab, logit));
  }

  void WriteTop() {
    struct Candidate {
      float logit;
      int32_t id;
    };
    Candidate top[kMaxTopLogprobs];
    uint32_t count = 0;
    if (row_.top_n == 0) return;
    for (uint32_t id = 0; id < params_.vocab; ++id) {
      const float logit = Sane(logits_[id]);
      // Ids rise, so an equal logit comes after those that are kept.
      if (count == row_.top_n && !(logit > top[count - 1].logit)) continue;
      if (count < row_.top_n) ++count;
      uint32_t at = count - 1;
      for (; at > 0 && logit > top[at - 1].logit; --at) top[at] = top[at - 1];
      top[at] = {logit, static_cast<int32_t>(id)};
    }
    int32_t rank = 1;
    for (uint32_t i = 0; i < count; ++i) {
      if (i > 0 && top[i].logit < top[i - 1].logit) rank = static_cast<int32_t>(i) + 1;
      Put(top[i].id, top[i].logit, rank);
    }
  }

  void Put(int32_t id, float logit, int32_t rank) {
    params_.out_ids[out_] = id;
    params_.out_logprobs[out_] = LogProb(logit);
    params_.out_ranks[out_] = rank;
    ++out_;
  }

  float LogProb(float logit) const {
    if (logit == kNever) return kNever;  // also if no id is possible
    return static_cast<float>(double{logit} - largest_ - log_sum_);
  }

  const LogProbsParams& params_;
  const LogProbsRow& row_;
  const float* const logits_;
  float largest_;
  double log_sum_;
  uint32_t out_;
};

void ReadRow(const LogProbsParams& p, const TaskContext& context) {
  RowReader(p, p.rows[context.task]).Write();
}

}  // namespace

void EncodeOp(OpList& list, const LogProbsParams& params) {
  list.Add("log_probs", params.count, &ReadRow, params);
}

}  // namespace tandem::kernels::host
