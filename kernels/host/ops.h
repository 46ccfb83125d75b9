// Ops shared by all backends on the host: copies, exact conversions, integers, and arithmetic that
// never dominates a step. Each appends the entries of one op call.
#ifndef TANDEM_KERNELS_HOST_OPS_H_
#define TANDEM_KERNELS_HOST_OPS_H_

#include "kernels/host/op_list.h"
#include "kernels/host/vocabulary_loops.h"
#include "kernels/ops.h"

namespace tandem::kernels::host {

void EncodeOp(OpList& list, const EmbedParams& params);
void EncodeOp(OpList& list, const LayerNormParams& params);
void EncodeOp(OpList& list, const SumSquaresParams& params);
void EncodeOp(OpList& list, const RouteParams& params);
void EncodeOp(OpList& list, const AddRowsParams& params);
void EncodeOp(OpList& list, const CopyRowsParams& params);
void EncodeOp(OpList& list, const SoftCapParams& params);
void EncodeOp(OpList& list, const GatherRowsParams& params);
void EncodeOp(OpList& list, const ScatterRunsParams& params);
void EncodeOp(OpList& list, const PoolRowsParams& params);
void EncodeOp(OpList& list, const UnshardLogitsParams& params);
void EncodeOp(OpList& list, const SampleParams& params);
void EncodeOp(OpList& list, const LogProbsParams& params);

// Sample with the loops of an instruction set that the processor has; the same bits.
void EncodeSample(OpList& list, const SampleParams& params, const VocabularyLoops& loops);

}  // namespace tandem::kernels::host

#endif  // TANDEM_KERNELS_HOST_OPS_H_
