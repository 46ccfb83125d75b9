// The CUDA backend's ops: each encodes one call on the stream. Parameters as kernels/ops.h has
// them; pointers are to device memory.
//
// An op asks for its scratch (Stream::Scratch) in every call, plan pass included, and launches
// nothing in a plan pass (Stream::Launch sees to it). Nothing synchronises, nothing allocates.
#ifndef TANDEM_KERNELS_CUDA_OPS_OPS_H_
#define TANDEM_KERNELS_CUDA_OPS_OPS_H_

#include "kernels/cuda/stream.h"
#include "kernels/ops.h"

namespace tandem::kernels::cuda {

class DenseGemm;

void EncodeEmbed(Stream& stream, const EmbedParams& params);
void EncodeRmsNorm(Stream& stream, const RmsNormParams& params);
void EncodeLayerNorm(Stream& stream, const LayerNormParams& params);
void EncodeMatMul(Stream& stream, DenseGemm& gemm, const MatMulParams& params);
void EncodeRoute(Stream& stream, const RouteParams& params);
void EncodeExpertMatMul(Stream& stream, const ExpertMatMulParams& params);
void EncodeHeadMatMul(Stream& stream, const HeadMatMulParams& params);
void EncodeRopeWriteKv(Stream& stream, const RopeWriteKvParams& params);
void EncodeAttention(Stream& stream, const AttentionParams& params);
void EncodeActivate(Stream& stream, const ActivateParams& params);
void EncodeAddRows(Stream& stream, const AddRowsParams& params);
void EncodeCopyRows(Stream& stream, const CopyRowsParams& params);
void EncodeSoftCap(Stream& stream, const SoftCapParams& params);
void EncodeGatherRows(Stream& stream, const GatherRowsParams& params);
void EncodeUnshardLogits(Stream& stream, const UnshardLogitsParams& params);
void EncodeSample(Stream& stream, const SampleParams& params);
void EncodeLogProbs(Stream& stream, const LogProbsParams& params);

}  // namespace tandem::kernels::cuda

#endif  // TANDEM_KERNELS_CUDA_OPS_OPS_H_
