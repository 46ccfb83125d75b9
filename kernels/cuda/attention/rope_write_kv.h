// RopeWriteKv with the norms of the heads before it, in one launch.
#ifndef TANDEM_KERNELS_CUDA_ATTENTION_ROPE_WRITE_KV_H_
#define TANDEM_KERNELS_CUDA_ATTENTION_ROPE_WRITE_KV_H_

#include <cstdint>

#include "kernels/cuda/stream.h"
#include "kernels/ops.h"

namespace tandem::kernels::cuda {

// An RmsNorm of every head, in place.
struct HeadNorm {
  float* heads = nullptr;  // null: there is no norm
  const float* weight = nullptr;
  float epsilon = 0;
};

struct HeadNorms {
  HeadNorm q;
  HeadNorm k;
  HeadNorm v;
};

// The norm of `heads` (rows, dim) if it can be taken along with RmsNorm's bits, else none.
HeadNorm HeadNormOf(const NormParams& norm, const float* heads, uint32_t rows, uint32_t dim);

void EncodeRopeWriteKv(Stream& stream, const RopeWriteKvParams& params, const HeadNorms& norms);

}  // namespace tandem::kernels::cuda

#endif  // TANDEM_KERNELS_CUDA_ATTENTION_ROPE_WRITE_KV_H_
