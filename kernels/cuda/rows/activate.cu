// Sources: Shazeer, "GLU variants improve transformer", 2020; Hendrycks and Gimpel, "Gaussian error
// linear units", 2016; gpt-oss's model card (2025) for the clamped gate.
// Floor: reads gate (and up) and writes out: 8 bytes per value, 12 with up.
#include "common/base/check.h"
#include "kernels/cuda/ops.h"
#include "kernels/cuda/rows/activation.h"
#include "kernels/cuda/rows/row_grid.h"

namespace tandem::kernels::cuda {
namespace {

struct ActivateTask {
  ActivateParams params;
  RowGrid grid;
};

template <Activation kFunction, uint32_t kWidth>
__global__ void __launch_bounds__(RowGrid::kThreads) ActivateKernel(const ActivateTask task) {
  const ActivateParams& p = task.params;
  task.grid.Do<kWidth>([&](uint32_t row, uint32_t column) {
    Store(p.out + static_cast<size_t>(row) * p.cols + column,
          ActivatedRun<kFunction, kWidth>(p, row, column));
  });
}

}  // namespace

void EncodeOp(Stream& stream, const ActivateParams& params) {
  TANDEM_CHECK(params.up != nullptr || params.function != Activation::kClampedSwiGlu);
  const bool fours = InFours({params.cols}, {params.gate, params.up, params.out});
  const RowGrid grid(params.rows, params.cols, fours ? 4 : 1);
  DispatchActivation(params.function, [&](auto function) {
    constexpr Activation kFunction = decltype(function)::value;
    stream.Launch("activate", fours ? &ActivateKernel<kFunction, 4> : &ActivateKernel<kFunction, 1>,
                  grid.grid(), RowGrid::kThreads, 0, {params, grid});
  });
}

}  // namespace tandem::kernels::cuda
