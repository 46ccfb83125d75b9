// Attention whose rows a product reads in BF16, or of a single row int8 groups: the merge of
// partial results rounds them.
#ifndef TANDEM_KERNELS_CUDA_ATTENTION_ATTENTION_H_
#define TANDEM_KERNELS_CUDA_ATTENTION_ATTENTION_H_

#include "kernels/cuda/attention/plan.h"
#include "kernels/cuda/stream.h"
#include "kernels/ops.h"

namespace tandem::kernels::cuda {

// Whether rows can be rounded: contexts may be long enough to be split (of shorter ones nothing is
// merged), and groups lie within heads.
bool AttentionRounds(const AttentionParams& params, const RoundedAttention& to);

// As EncodeOp, but the rows go to `to`, and `out` is undefined afterwards. Requires
// AttentionRounds.
void EncodeAttention(Stream& stream, const AttentionParams& params, const RoundedAttention& to);

}  // namespace tandem::kernels::cuda

#endif  // TANDEM_KERNELS_CUDA_ATTENTION_ATTENTION_H_
