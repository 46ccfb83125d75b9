// Floor: the bytes of both weights are read once; 1.5 bytes per activated value written.
#include "kernels/cuda/device/blocks_dispatch.h"
#include "kernels/cuda/matmul/gate_up_matvec_kernel.h"

namespace tandem::kernels::cuda {

bool LaunchGateUpMatVecOfGrids(Stream& stream, tensor::Type type, const GateUpMatVecTask& task) {
  return BlockTypesOfGrids::Dispatch(
      type, [&](auto t) { LaunchGateUpMatVec<decltype(t)::value>(stream, task); });
}

}  // namespace tandem::kernels::cuda
