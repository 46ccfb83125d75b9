// Activations as int8, for products with block-quantised weights. For host code too.
#ifndef TANDEM_KERNELS_CUDA_DEVICE_INT8_GROUP_H_
#define TANDEM_KERNELS_CUDA_DEVICE_INT8_GROUP_H_

namespace tandem::kernels::cuda {

// 32 activations as bytes with one scale: x[4 i + j] = scale * byte j of q[i], each in [-127, 127].
// Sums are of the bytes of the first and of the second 16.
struct alignas(16) Int8Group {
  int q[8];
  float scale;
  int sum_low;
  int sum_high;
};

}  // namespace tandem::kernels::cuda

#endif  // TANDEM_KERNELS_CUDA_DEVICE_INT8_GROUP_H_
