// Sample: draws one token per row. Shared by all backends on the host, so that they draw the same.
//
// Weights are exp((logit - largest) / temperature); banned ids and NaNs weigh nothing. min_p drops
// what weighs less than min_p times the largest; top_k keeps the k heaviest; top_p then keeps the
// shortest run of the heaviest whose share of what is left reaches top_p. Among equal weights the
// lower id is the heavier. The draw walks what is kept in order of ids until the weights pass
// UniformDraw(seed, position) times their sum. Temperature 0 takes the lowest id of the largest
// logit. Where nothing can be drawn (all NaN, -inf or banned) the result is the lowest id that is
// not banned, or 0.
#ifndef TANDEM_KERNELS_HOST_SAMPLE_H_
#define TANDEM_KERNELS_HOST_SAMPLE_H_

#include "kernels/host/op_list.h"
#include "kernels/ops.h"

namespace tandem::kernels::host {

void EncodeSample(OpList& list, const SampleParams& params);

}  // namespace tandem::kernels::host

#endif  // TANDEM_KERNELS_HOST_SAMPLE_H_
