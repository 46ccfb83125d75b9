// The filters of Sample on a row of weights, which are not negative: what drops ids sets their
// weights to zero. Ids are ranked by weight, heavier first, then lower id.
#ifndef TANDEM_KERNELS_HOST_SAMPLE_FILTERS_H_
#define TANDEM_KERNELS_HOST_SAMPLE_FILTERS_H_

#include <cstdint>

#include "kernels/host/heaviest.h"
#include "kernels/host/vocabulary_loops.h"

namespace tandem::kernels::host {

// In all of them `keys` has room for `vocab`, and some weight is positive before and afterwards.

inline constexpr uint64_t kKeepsAll = 0;  // as Heaviest::last

// The `top_k` heaviest (0 or less: all), of them the fewest heaviest whose share of their weight
// reaches `top_p` (1 or more: all). `total` is the sum of weights.
Heaviest FindHeaviest(const VocabularyLoops& loops, int32_t top_k, float top_p,
                      const float* weights, double total, uint64_t* keys, uint32_t vocab);
// Drops the ids after `last`.
void KeepUpTo(const VocabularyLoops& loops, uint64_t last, float* weights, uint32_t vocab);
// Keeps the fewest whose share reaches `typical_p`, those first whose ln(weight) is closest to its
// mean under the weights, then lower ids.
void KeepTypical(float typical_p, float* weights, uint64_t* keys, uint32_t vocab);
// Of the ids with a share of at least `threshold` keeps only the last.
void DropTopChoices(const VocabularyLoops& loops, float threshold, float* weights, uint32_t vocab);

}  // namespace tandem::kernels::host

#endif  // TANDEM_KERNELS_HOST_SAMPLE_FILTERS_H_
