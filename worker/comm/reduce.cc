#include "worker/comm/reduce.h"

#include <algorithm>
#include <cstring>

namespace tandem::worker {
namespace {

// `out` may be `a` or `b` itself, which is no dependency between elements.
void Add(const float* a, const float* b, float* out, size_t count) {
#pragma GCC ivdep
  for (size_t i = 0; i < count; ++i) out[i] = a[i] + b[i];
}

// Sums stay in the first-level cache while the ranks beyond the second are added.
constexpr size_t kBlock = 1024;

}  // namespace

void SumInRankOrder(const float* const* sources, int ranks, float* out, size_t count) {
  if (ranks == 1) {
    if (out != sources[0] && count > 0) std::memcpy(out, sources[0], count * sizeof(float));
    return;
  }
  if (ranks == 2) return Add(sources[0], sources[1], out, count);
  float sum[kBlock];
  for (size_t begin = 0; begin < count; begin += kBlock) {
    const size_t part = std::min(kBlock, count - begin);
    Add(sources[0] + begin, sources[1] + begin, sum, part);
    for (int rank = 2; rank + 1 < ranks; ++rank) Add(sum, sources[rank] + begin, sum, part);
    // The last source writes `out`, which may be a source whose block is no longer needed.
    Add(sum, sources[ranks - 1] + begin, out + begin, part);
  }
}

}  // namespace tandem::worker
