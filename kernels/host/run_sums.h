// The sums of weights of each run of 512 ids of a vocabulary, from which Sample draws: whichever
// way they come about, they have the same bits.
#ifndef TANDEM_KERNELS_HOST_RUN_SUMS_H_
#define TANDEM_KERNELS_HOST_RUN_SUMS_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "kernels/host/heaviest.h"
#include "kernels/host/vocabulary_loops.h"

namespace tandem::kernels::host {

// Of weights that must outlive it. One thread.
class RunSums {
 public:
  static constexpr uint32_t kRun = 512;
  static constexpr size_t CountOf(uint32_t vocab) { return (size_t{vocab} + kRun - 1) / kRun; }

  // `sums` has room for CountOf(vocab), and need not be set.
  RunSums(const VocabularyLoops& loops, const float* weights, uint32_t vocab, double* sums)
      : loops_(loops), weights_(weights), vocab_(vocab), sums_(sums) {}

  // Of one run, of all ids, or of those up to the key `last`.
  void Add(uint32_t begin);
  void AddAll();
  void AddUpTo(uint64_t last);
  // Likewise, of `count` keys, among which are all up to `last`, and which are put in another
  // order.
  void AddGathered(uint64_t* keys, size_t count, uint64_t last);

  double Total() const;
  // With the sums of all ids: whether top_p keeps `id`. From as many runs as it takes to tell.
  bool TopPKeeps(uint32_t id, float top_p) const;
  // The id up to `last` at which the running sum passes `share` of the total; if rounding leaves a
  // remainder, the last one. REQUIRES: some sum is positive.
  int32_t Draw(double share, uint64_t last) const;

 private:
  uint32_t EndOf(uint32_t begin) const { return std::min(vocab_ - begin, kRun) + begin; }
  double SumUpTo(uint32_t begin, uint64_t last) const;
  double SumBefore(uint32_t begin, uint32_t id) const;

  const VocabularyLoops& loops_;
  const float* const weights_;
  const uint32_t vocab_;
  double* const sums_;
};

}  // namespace tandem::kernels::host

#endif  // TANDEM_KERNELS_HOST_RUN_SUMS_H_
