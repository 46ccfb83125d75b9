// Attention whose rows a product reads as int8 groups: the merge of partial results rounds them.
#ifndef TANDEM_KERNELS_CUDA_ATTENTION_ATTENTION_H_
#define TANDEM_KERNELS_CUDA_ATTENTION_ATTENTION_H_

#include "kernels/cuda/rows/quantize_rows.h"
#include "kernels/cuda/stream.h"
#include "kernels/ops.h"

namespace tandem::kernels::cuda {

// Whether it gives groups of a weight's columns, of which the rows' first value has column
// `first_column`: groups lie within heads, and contexts may be long enough to be split. Of shorter
// ones nothing is merged.
bool AttentionRounds(const AttentionParams& params, uint32_t first_column);

// As EncodeOp, but `bytes` gets the groups of `out`, which is undefined afterwards. Requires
// AttentionRounds.
void EncodeAttention(Stream& stream, const AttentionParams& params, const Int8Rows& bytes);

}  // namespace tandem::kernels::cuda

#endif  // TANDEM_KERNELS_CUDA_ATTENTION_ATTENTION_H_
