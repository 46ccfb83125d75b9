// Activation functions of feed-forward blocks, with their gates. Device code. Sums of products name
// their rounding, as in the norms: kernels that write floats and bytes give the same bits then,
// whatever the compiler fuses.
#ifndef TANDEM_KERNELS_CUDA_ROWS_ACTIVATION_H_
#define TANDEM_KERNELS_CUDA_ROWS_ACTIVATION_H_

#include <cuda_runtime.h>

#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "kernels/cuda/device/floats.h"
#include "kernels/ops.h"

namespace tandem::kernels::cuda {

// x sigmoid(y); -0 where exp overflows.
__device__ inline float TimesSigmoid(float x, float y) { return x / __fadd_rn(1.0f, expf(-y)); }

// Minimum and maximum that propagate NaN.
__device__ inline float AtMost(float x, float limit) { return x > limit ? limit : x; }
__device__ inline float AtLeast(float x, float limit) { return x < limit ? limit : x; }

template <Activation kFunction>
__device__ float Activated(float gate, float up) {
  if constexpr (kFunction == Activation::kSilu) return TimesSigmoid(gate, gate) * up;
  if constexpr (kFunction == Activation::kGeluTanh) {
    // x (1 + tanh z) / 2 as x sigmoid(2 z), which avoids cancellation.
    constexpr float kTwoRootTwoOverPi = 1.59576912f;
    const float z = kTwoRootTwoOverPi * fmaf(0.044715f * gate * gate, gate, gate);
    return TimesSigmoid(gate, z) * up;
  }
  if constexpr (kFunction == Activation::kSigmoid) return TimesSigmoid(up, gate);
  const float g = AtMost(gate, 7.0f);
  return TimesSigmoid(g, 1.702f * g) * (AtLeast(AtMost(up, 7.0f), -7.0f) + 1.0f);
}

__device__ inline float Activated(Activation function, float gate, float up) {
  switch (function) {
    case Activation::kSilu:
      return Activated<Activation::kSilu>(gate, up);
    case Activation::kGeluTanh:
      return Activated<Activation::kGeluTanh>(gate, up);
    case Activation::kClampedSwiGlu:
      return Activated<Activation::kClampedSwiGlu>(gate, up);
    case Activation::kSigmoid:
      return Activated<Activation::kSigmoid>(gate, up);
  }
  return 0.0f;
}

// kWidth values of what Activate writes, from `column` on.
template <Activation kFunction, uint32_t kWidth>
__device__ __forceinline__ Floats<kWidth> ActivatedRun(const ActivateParams& p, uint32_t row,
                                                       uint32_t column) {
  const size_t at = static_cast<size_t>(row) * p.cols + column;
  Floats<kWidth> values = Load<kWidth>(p.gate + at);
  if (p.gate_scale != nullptr) {
    const float scale = p.gate_scale[row];
#pragma unroll
    for (uint32_t i = 0; i < kWidth; ++i) values.at[i] *= scale;
  }
  if (p.up != nullptr) {
    const Floats<kWidth> up = Load<kWidth>(p.up + at);
#pragma unroll
    for (uint32_t i = 0; i < kWidth; ++i) {
      values.at[i] = Activated<kFunction>(values.at[i], up.at[i]);
    }
  } else {
#pragma unroll
    for (uint32_t i = 0; i < kWidth; ++i) values.at[i] = Activated<kFunction>(values.at[i], 1.0f);
  }
  return values;
}

// Calls launch with the function, as an integral_constant.
template <typename F>
void DispatchActivation(Activation function, F&& launch) {
  switch (function) {
    case Activation::kSilu:
      return launch(std::integral_constant<Activation, Activation::kSilu>());
    case Activation::kGeluTanh:
      return launch(std::integral_constant<Activation, Activation::kGeluTanh>());
    case Activation::kClampedSwiGlu:
      return launch(std::integral_constant<Activation, Activation::kClampedSwiGlu>());
    case Activation::kSigmoid:
      return launch(std::integral_constant<Activation, Activation::kSigmoid>());
  }
}

}  // namespace tandem::kernels::cuda

#endif  // TANDEM_KERNELS_CUDA_ROWS_ACTIVATION_H_
