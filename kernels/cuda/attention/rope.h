// Rotary position embedding of one pair of dims, and where K and V go: what RopeWriteKv does by
// itself and at the end of a product (matmul/rope_end.h), so that both have the same bits.
#ifndef TANDEM_KERNELS_CUDA_ATTENTION_ROPE_H_
#define TANDEM_KERNELS_CUDA_ATTENTION_ROPE_H_

#include <cuda_runtime.h>

#include <cstddef>
#include <cstdint>

#include "common/tensor/type.h"
#include "kernels/cuda/device/numbers.h"
#include "kernels/ops.h"

namespace tandem::kernels::cuda {

struct Rotation {
  float cosine;
  float sine;
};

// Of a pair with this frequency at a position; cosine and sine are times `magnitude`. The angle, a
// float, is reduced in double, to at most half a turn either way: what sincosf does for large ones
// takes local memory.
__device__ __forceinline__ Rotation RotationOf(int32_t position, float inv_freq, float magnitude) {
  constexpr double kInversePi = 0.31830988618379067154;
  const float angle = static_cast<float>(position) * inv_freq;
  const double half_turns = static_cast<double>(angle) * kInversePi;
  float sine, cosine;
  sincospif(static_cast<float>(fma(-2.0, rint(0.5 * half_turns), half_turns)), &sine, &cosine);
  return {cosine * magnitude, sine * magnitude};
}

// Rotates a pair. Which product is rounded is said, so that it does not depend on the compiler.
__device__ __forceinline__ void Rotate(const Rotation& by, float& a, float& b) {
  const float x = a, y = b;
  a = fmaf(x, by.cosine, -__fmul_rn(y, by.sine));
  b = fmaf(y, by.cosine, __fmul_rn(x, by.sine));
}

// The row of K or V pages for the first head of the token in a slot; that of the next is
// block_size rows on.
__device__ __forceinline__ size_t PageRow(const KvPages& pages, int32_t slot) {
  const size_t block = static_cast<uint32_t>(slot) / pages.block_size;
  const size_t offset = static_cast<uint32_t>(slot) % pages.block_size;
  return block * pages.kv_heads * pages.block_size + offset;
}

// Stores value `at` of pages of F32, F16 or BF16.
__device__ __forceinline__ void StorePageValue(tensor::Type type, void* pages, size_t at,
                                               float value) {
  if (type == tensor::Type::kF32) {
    static_cast<float*>(pages)[at] = value;
  } else {
    static_cast<uint16_t*>(pages)[at] =
        type == tensor::Type::kF16 ? FloatToHalf(value) : FloatToBf16(value);
  }
}

}  // namespace tandem::kernels::cuda

#endif  // TANDEM_KERNELS_CUDA_ATTENTION_ROPE_H_
