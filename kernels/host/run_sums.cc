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
