// The reduction shared by all communicators on the CPU.
#ifndef TANDEM_WORKER_COMM_REDUCE_H_
#define TANDEM_WORKER_COMM_REDUCE_H_

#include <cstddef>

namespace tandem::worker {

// out[i] = ((sources[0][i] + sources[1][i]) + sources[2][i]) + ... of `ranks` arrays of `count`
// floats, ranks >= 1. `out` may be one of the sources; otherwise arrays do not overlap.
void SumInRankOrder(const float* const* sources, int ranks, float* out, size_t count);

}  // namespace tandem::worker

#endif  // TANDEM_WORKER_COMM_REDUCE_H_
