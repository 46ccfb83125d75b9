#include "kernels/host/run_sums.h"

#include "kernels/host/weight_key.h"

namespace tandem::kernels::host {

void RunSums::Add(uint32_t begin) {
  sums_[begin / kRun] = loops_.sum(weights_ + begin, EndOf(begin) - begin, 0);
}

void RunSums::AddAll() {
  for (uint32_t begin = 0; begin < vocab_; begin += kRun) Add(begin);
}

void RunSums::AddUpTo(uint64_t last) {
  // Of equal weights the lower ids stay.
  const float least = KeyWeight(last);
  const float above = NextWeight(least);
  const uint32_t id = KeyId(last);
  for (uint32_t begin = 0; begin < vocab_; begin += kRun) {
    const uint32_t end = EndOf(begin);
    if (id >= begin && id < end) {
      sums_[begin / kRun] = SumUpTo(begin, last);
    } else {
      sums_[begin / kRun] = loops_.sum(weights_ + begin, end - begin, id < begin ? above : least);
    }
  }
}

// Of the run in which `last` is.
double RunSums::SumUpTo(uint32_t begin, uint64_t last) const {
  const uint32_t end = EndOf(begin);
  float kept[kRun];
  for (uint32_t id = begin; id < end; ++id)
    kept[id - begin] = WeightKey(weights_[id], id) >= last ? weights_[id] : 0.0f;
  return loops_.sum(kept, end - begin, 0);
}

void RunSums::AddGathered(uint64_t* keys, size_t count, uint64_t last) {
  uint64_t* const end =
      std::partition(keys, keys + count, [=](uint64_t key) { return key >= last; });
  std::sort(keys, end, [](uint64_t a, uint64_t b) { return KeyId(a) < KeyId(b); });
  std::fill_n(sums_, CountOf(vocab_), 0.0);
  for (const uint64_t* key = keys; key < end;) {
    const uint32_t run = KeyId(*key) / kRun, begin = run * kRun;
    const size_t whole = (EndOf(begin) - begin) / kSumLanes * kSumLanes;
    double lanes[kSumLanes] = {};  // as VocabularyLoops::sum has them
    for (; key < end && KeyId(*key) / kRun == run; ++key) {
      const uint32_t i = KeyId(*key) - begin;
      lanes[i < whole ? i % kSumLanes : 0] += static_cast<double>(KeyWeight(*key));
    }
    for (const double lane : lanes) sums_[run] += lane;
  }
}

// Of a run's ids that rank before `id`.
double RunSums::SumBefore(uint32_t begin, uint32_t id) const {
  // Of equal weights the lower ids come first.
  const float weight = weights_[id], above = NextWeight(weight);
  const uint32_t end = EndOf(begin), middle = std::clamp(id, begin, end);
  double sum = 0;
  if (begin < middle) sum += loops_.sum(weights_ + begin, middle - begin, weight);
  if (middle < end) sum += loops_.sum(weights_ + middle, end - middle, above);
  return sum;
}

bool RunSums::TopPKeeps(uint32_t id, float top_p) const {
  const double total = Total(), target = TopPTarget(total, top_p);
  // Larger than what sums in another order can differ by.
  const double margin = total * 1e-9;
  double before = 0, others = 0;
  for (uint32_t begin = 0; begin < vocab_; begin += kRun) {
    const double sum = SumBefore(begin, id);
    before += sum;
    others += sums_[begin / kRun] - sum;
    if (before > target + margin) return false;
    if (others > total - target + margin) return true;
  }
  return before < target;
}

double RunSums::Total() const {
  double total = 0;
  for (size_t run = 0; run < CountOf(vocab_); ++run) total += sums_[run];
  return total;
}

int32_t RunSums::Draw(double share, uint64_t last) const {
  double left = share * Total();
  uint32_t begin = 0;
  bool inside = false;
  for (uint32_t run = 0; run < CountOf(vocab_) && !inside; ++run) {
    if (sums_[run] == 0) continue;
    begin = run * kRun;
    inside = left < sums_[run];
    if (!inside) left -= sums_[run];
  }
  int32_t drawn = 0;
  for (uint32_t id = begin; id < EndOf(begin); ++id) {
    if (weights_[id] == 0 || WeightKey(weights_[id], id) < last) continue;
    drawn = static_cast<int32_t>(id);
    left -= static_cast<double>(weights_[id]);
    if (inside && left < 0) break;
  }
  return drawn;
}

}  // namespace tandem::kernels::host
