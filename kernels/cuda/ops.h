// The CUDA backend's ops: each encodes one call on the stream. Parameters are those of
// kernels/ops.h; pointers are to device memory.
//
// An op requests its scratch (Stream::Scratch) in every call, plan pass included; Stream::Launch
// launches nothing in a plan pass. Nothing synchronises, nothing allocates.
#ifndef TANDEM_KERNELS_CUDA_OPS_H_
#define TANDEM_KERNELS_CUDA_OPS_H_

#include "kernels/cuda/stream.h"
#include "kernels/ops.h"

namespace tandem::kernels::cuda {

class DenseGemm;

void EncodeOp(Stream& stream, const EmbedParams& params);
void EncodeOp(Stream& stream, const RmsNormParams& params);
void EncodeOp(Stream& stream, const LayerNormParams& params);
void EncodeOp(Stream& stream, const SumSquaresParams& params);
void EncodeOp(Stream& stream, DenseGemm& gemm, const MatMulParams& params);
void EncodeOp(Stream& stream, DenseGemm& gemm, const MatMulAddParams& params);
void EncodeOp(Stream& stream, DenseGemm& gemm, const NormMatMulParams& params);
void EncodeOp(Stream& stream, DenseGemm& gemm, const AttentionMatMulParams& params);
void EncodeOp(Stream& stream, DenseGemm& gemm, const QkvParams& params);
void EncodeOp(Stream& stream, DenseGemm& gemm, const FeedForwardParams& params);
void EncodeOp(Stream& stream, const RouteParams& params);
void EncodeOp(Stream& stream, const ExpertMatMulParams& params);
void EncodeOp(Stream& stream, const HeadMatMulParams& params);
void EncodeOp(Stream& stream, const RopeWriteKvParams& params);
void EncodeOp(Stream& stream, const AttentionParams& params);
void EncodeOp(Stream& stream, const ShortConvParams& params);
void EncodeOp(Stream& stream, const GatedDeltaRuleParams& params);
void EncodeOp(Stream& stream, const ActivateParams& params);
void EncodeOp(Stream& stream, const AddRowsParams& params);
void EncodeOp(Stream& stream, const CopyRowsParams& params);
void EncodeOp(Stream& stream, const SoftCapParams& params);
void EncodeOp(Stream& stream, const GatherRowsParams& params);
void EncodeOp(Stream& stream, const ScatterRunsParams& params);
void EncodeOp(Stream& stream, const PoolRowsParams& params);
void EncodeOp(Stream& stream, const UnshardLogitsParams& params);
void EncodeOp(Stream& stream, const SampleParams& params);
void EncodeOp(Stream& stream, const LogProbsParams& params);

}  // namespace tandem::kernels::cuda

#endif  // TANDEM_KERNELS_CUDA_OPS_H_
