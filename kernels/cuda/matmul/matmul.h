// MatMul and MatMulAdd with the op that writes their rows.
#ifndef TANDEM_KERNELS_CUDA_MATMUL_MATMUL_H_
#define TANDEM_KERNELS_CUDA_MATMUL_MATMUL_H_

#include "kernels/cuda/dense_gemm.h"
#include "kernels/cuda/matmul/activations.h"
#include "kernels/cuda/matmul/rope_end.h"
#include "kernels/cuda/stream.h"
#include "kernels/ops.h"

namespace tandem::kernels::cuda {

// The results and bits of `before`, then the product; what `before` writes for it is undefined
// afterwards. With an `end` all projections are block-quantised parts of one launch, whose tiles
// have pairs of dims (rope_units.h).
void EncodeProduct(Stream& stream, DenseGemm& gemm, const RowsBefore& before,
                   const MatMulParams& params, const RopeEnd& end = {});
void EncodeProduct(Stream& stream, DenseGemm& gemm, const RowsBefore& before,
                   const MatMulAddParams& params);

// q, k and v. Returns whether the same launch has rotated heads and written pages, so that
// RopeWriteKv must not follow: up to 128 tokens, where all three are quantised and one launch,
// pages are not quantised, heads have no norms, queries no temperature, and pairs are in one unit
// of rows (rope_units.h).
bool EncodeQkvProduct(Stream& stream, DenseGemm& gemm, const QkvParams& params);

}  // namespace tandem::kernels::cuda

#endif  // TANDEM_KERNELS_CUDA_MATMUL_MATMUL_H_
