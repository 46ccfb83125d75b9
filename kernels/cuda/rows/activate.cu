// Sources: Shazeer, "GLU variants improve transformer", 2020; Hendrycks and Gimpel, "Gaussian error
// linear units", 2016; gpt-oss's model card (2025) for the clamped gate.
// Floor: reads gate (and up) and writes out: 8 bytes per value, 12 with up.
#include "common/base/check.h"
#include "kernels/cuda/device/floats.h"
#include "kernels/cuda/ops.h"
#include "kernels/cuda/rows/row_grid.h"

namespace tandem::kernels::cuda {
namespace {

struct ActivateTask {
  ActivateParams params;
  RowGrid grid;
};

// x sigmoid(y); -0 where exp overflows.
__device__ float TimesSigmoid(float x, float y) { return x / (1.0f + expf(-y)); }

// Minimum and maximum that propagate NaN.
__device__ float AtMost(float x, float limit) { return x > limit ? limit : x; }
__device__ float AtLeast(float x, float limit) { return x < limit ? limit : x; }

template <Activation kFunction>
__device__ float Activated(float gate, float up) {
  if constexpr (kFunction == Activation::kSilu) return TimesSigmoid(gate, gate) * up;
  if constexpr (kFunction == Activation::kGeluTanh) {
    // x (1 + tanh z) / 2 as x sigmoid(2 z), which avoids cancellation.
    constexpr float kTwoRootTwoOverPi = 1.59576912f;
    const float z = kTwoRootTwoOverPi * (gate + 0.044715f * gate * gate * gate);
    return TimesSigmoid(gate, z) * up;
  }
  if constexpr (kFunction == Activation::kSigmoid) return TimesSigmoid(up, gate);
  const float g = AtMost(gate, 7.0f);
  return TimesSigmoid(g, 1.702f * g) * (AtLeast(AtMost(up, 7.0f), -7.0f) + 1.0f);
}

template <Activation kFunction, uint32_t kWidth>
__global__ void __launch_bounds__(RowGrid::kThreads) ActivateKernel(const ActivateTask task) {
  const ActivateParams& p = task.params;
  task.grid.Do<kWidth>([&](uint32_t row, uint32_t column) {
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
    Store(p.out + at, values);
  });
}

template <Activation kFunction>
void Launch(Stream& stream, const ActivateParams& params) {
  const bool fours = InFours({params.cols}, {params.gate, params.up, params.out});
  const RowGrid grid(params.rows, params.cols, fours ? 4 : 1);
  stream.Launch("activate", fours ? &ActivateKernel<kFunction, 4> : &ActivateKernel<kFunction, 1>,
                grid.grid(), RowGrid::kThreads, 0, {params, grid});
}

}  // namespace

void EncodeOp(Stream& stream, const ActivateParams& params) {
  TANDEM_CHECK(params.up != nullptr || params.function != Activation::kClampedSwiGlu);
  switch (params.function) {
    case Activation::kSilu:
      return Launch<Activation::kSilu>(stream, params);
    case Activation::kGeluTanh:
      return Launch<Activation::kGeluTanh>(stream, params);
    case Activation::kClampedSwiGlu:
      return Launch<Activation::kClampedSwiGlu>(stream, params);
    case Activation::kSigmoid:
      return Launch<Activation::kSigmoid>(stream, params);
  }
}

}  // namespace tandem::kernels::cuda
