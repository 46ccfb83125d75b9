// Source: Ba, Kiros and Hinton, "Layer normalization", 2016.
// Floor: reads residual (and add) and writes residual and out once: 8 bytes per value without add,
// 16 with; groups of 32 as bytes are 1.5 per value instead of 4, BF16 2. Sums are in double: the
// mean may be far larger than the deviations from it.
#include "kernels/cuda/device/launch_order.h"
#include "kernels/cuda/norm/norm_row.h"
#include "kernels/cuda/ops.h"

namespace tandem::kernels::cuda {
namespace {

// Registers of the longest rows are more than two blocks of a multiprocessor would have.
template <uint32_t kRuns, bool kRowPerWarp>
__global__ void __launch_bounds__(kNormThreads, 1)
    LayerNormKernel(const NormTask<LayerNormParams> task) {
  FollowEarlierLaunches();
  const LayerNormParams& p = task.params;
  SharedArena arena;
  const SharedArray<double> room = arena.Take<double>(kBlockReduceRoom);
  double sum = 0;
  const NormRow<kRuns, kRowPerWarp> row(task, [&](float value) { sum += value; });
  const double mean = row.Sum(sum, room) / p.dim;
  double squares = 0;
  row.ForEach([&](float value) {
    const double off = value - mean;
    squares += off * off;
  });
  const double scale = 1.0 / sqrt(row.Sum(squares, room) / p.dim + p.epsilon);
  row.WriteAll(p.out, p.dim, task.rounded, [&](auto values, uint32_t i) {
    const auto weight = row.Read(p.weight + i);
#pragma unroll
    for (uint32_t j = 0; j < row.kWidth; ++j) {
      const auto normed = static_cast<float>((values.at[j] - mean) * scale);
      values.at[j] = __fmul_rn(normed, weight.at[j]);
    }
    if (p.bias != nullptr) {
      const auto bias = row.Read(p.bias + i);
#pragma unroll
      for (uint32_t j = 0; j < row.kWidth; ++j) values.at[j] += bias.at[j];
    }
    return values;
  });
}

template <uint32_t kRuns, bool kRowPerWarp>
struct Kernel {
  static constexpr auto kRun = &LayerNormKernel<kRuns, kRowPerWarp>;
};

}  // namespace

void EncodeNorm(Stream& stream, const LayerNormParams& params, const RoundedRows& rounded) {
  const bool aligned =
      InFours({params.dim}, {params.residual, params.add, params.weight, params.bias, params.out});
  LaunchNorm<Kernel>(stream, "layer_norm", params, aligned, rounded,
                     SharedBytes<double>(kBlockReduceRoom));
}

void EncodeOp(Stream& stream, const LayerNormParams& params) { EncodeNorm(stream, params, {}); }

}  // namespace tandem::kernels::cuda
