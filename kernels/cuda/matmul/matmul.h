// MatMul and MatMulAdd with the op that writes their rows.
#ifndef TANDEM_KERNELS_CUDA_MATMUL_MATMUL_H_
#define TANDEM_KERNELS_CUDA_MATMUL_MATMUL_H_

#include "kernels/cuda/dense_gemm.h"
#include "kernels/cuda/matmul/activations.h"
#include "kernels/cuda/stream.h"
#include "kernels/ops.h"

namespace tandem::kernels::cuda {

// The results and bits of `before`, then the product; what `before` writes for it is undefined
// afterwards.
void EncodeProduct(Stream& stream, DenseGemm& gemm, const RowsBefore& before,
                   const MatMulParams& params);
void EncodeProduct(Stream& stream, DenseGemm& gemm, const RowsBefore& before,
                   const MatMulAddParams& params);

}  // namespace tandem::kernels::cuda

#endif  // TANDEM_KERNELS_CUDA_MATMUL_MATMUL_H_
