// Sources: Shazeer, "GLU variants improve transformer", 2020; Hendrycks and Gimpel, "Gaussian error
// linear units", 2016; gpt-oss's model card (2025) for the clamped gate.
// Floor: reads gate (and up) and writes out: 8 bytes per value, 12 with up; 6 and 10 where only
// rows in BF16 are written.
#include "kernels/cuda/rows/activate.h"

#include "common/base/check.h"
#include "kernels/cuda/device/launch_order.h"
#include "kernels/cuda/device/store_bf16.h"
#include "kernels/cuda/ops.h"
#include "kernels/cuda/rows/activation.h"
#include "kernels/cuda/rows/row_grid.h"

namespace tandem::kernels::cuda {
namespace {

struct ActivateTask {
  ActivateParams params;
  Bf16Rows bf16;
  RowGrid grid;
};

template <Activation kFunction, uint32_t kWidth>
__global__ void __launch_bounds__(RowGrid::kThreads) ActivateKernel(const ActivateTask task) {
  FollowEarlierLaunches();
  const ActivateParams& p = task.params;
  task.grid.Do<kWidth>([&](uint32_t row, uint32_t column) {
    const Floats<kWidth> values = ActivatedRun<kFunction, kWidth>(p, row, column);
    if (p.out != nullptr) Store(p.out + static_cast<size_t>(row) * p.cols + column, values);
    if (task.bf16.out != nullptr) StoreBf16(task.bf16.At(row, column), values);
  });
}

}  // namespace

void EncodeActivate(Stream& stream, const ActivateParams& params, const Bf16Rows& bf16) {
  TANDEM_CHECK(params.up != nullptr || params.function != Activation::kClampedSwiGlu);
  const bool fours = InFours({params.cols}, {params.gate, params.up, params.out});
  const RowGrid grid(params.rows, params.cols, fours ? 4 : 1);
  DispatchActivation(params.function, [&](auto function) {
    constexpr Activation kFunction = decltype(function)::value;
    stream.LaunchEarly("activate",
                       fours ? &ActivateKernel<kFunction, 4> : &ActivateKernel<kFunction, 1>,
                       grid.grid(), RowGrid::kThreads, 0, {params, bf16, grid});
  });
}

void EncodeOp(Stream& stream, const ActivateParams& params) { EncodeActivate(stream, params, {}); }

}  // namespace tandem::kernels::cuda
