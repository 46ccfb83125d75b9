// Source: Zhang and Sennrich, "Root mean square layer normalization", 2019.
// Floor: reads residual (and add) and writes residual and out once: 8 bytes per value without add,
// 16 with; groups of 32 as bytes are 1.5 per value instead of 4, BF16 2.
#include "kernels/cuda/device/launch_order.h"
#include "kernels/cuda/norm/norm_row.h"
#include "kernels/cuda/ops.h"

namespace tandem::kernels::cuda {
namespace {

template <uint32_t kRuns, bool kRowPerWarp>
__global__ void __launch_bounds__(kNormThreads) RmsNormKernel(const NormTask<RmsNormParams> task) {
  FollowEarlierLaunches();
  const RmsNormParams& p = task.params;
  SharedArena arena;
  const SharedArray<float> room = arena.Take<float>(kBlockReduceRoom);
  float squares = 0;
  const NormRow<kRuns, kRowPerWarp> row(
      task, [&](float value) { squares = fmaf(value, value, squares); });
  float mean = row.Sum(squares, room) / static_cast<float>(p.dim);
  if (p.sum_squares != nullptr && row.inside()) {
    mean = p.sum_squares[row.index()] / static_cast<float>(p.sum_dim);
  }
  const float scale = 1.0f / sqrtf(mean + p.epsilon);
  const uint32_t stride = p.out_stride == 0 ? p.dim : p.out_stride;
  row.WriteAll(p.out, stride, task.rounded, [&](auto values, uint32_t i) {
    const auto weight = row.Read(p.weight + i);
#pragma unroll
    for (uint32_t j = 0; j < row.kWidth; ++j) values.at[j] *= scale * weight.at[j];
    if (p.gate != nullptr) {
      const auto gate = row.Read(p.gate + static_cast<size_t>(row.index()) * p.dim + i);
      // Fast division: to 2 ulp, and 0 instead of up to 1e-36 where the exponential exceeds 2^126.
#pragma unroll
      for (uint32_t j = 0; j < row.kWidth; ++j) {
        values.at[j] *= __fdividef(gate.at[j], __fadd_rn(1.0f, expf(-gate.at[j])));
      }
    }
    return values;
  });
}

template <uint32_t kRuns, bool kRowPerWarp>
struct Kernel {
  static constexpr auto kRun = &RmsNormKernel<kRuns, kRowPerWarp>;
};

}  // namespace

void EncodeNorm(Stream& stream, const RmsNormParams& params, const RoundedRows& rounded) {
  const bool aligned =
      InFours({params.dim, params.out_stride},
              {params.residual, params.add, params.weight, params.gate, params.out});
  LaunchNorm<Kernel>(stream, "rms_norm", params, aligned, rounded,
                     SharedBytes<float>(kBlockReduceRoom));
}

void EncodeOp(Stream& stream, const RmsNormParams& params) { EncodeNorm(stream, params, {}); }

}  // namespace tandem::kernels::cuda
