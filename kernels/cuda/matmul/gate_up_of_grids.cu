// Floor: the bytes of both weights are read once; 2 bytes per activated value written; 2 * tokens *
// rows * columns operations on tensor cores, in BF16.
#include "kernels/cuda/device/blocks_dispatch.h"
#include "kernels/cuda/matmul/gate_up_kernel.h"

namespace tandem::kernels::cuda {

bool LaunchGateUpOfGrids(Stream& stream, tensor::Type type, const GateUpTask& task) {
  return BlockTypesOfGrids::Dispatch(
      type, [&](auto t) { LaunchGateUp<decltype(t)::value>(stream, task); });
}

}  // namespace tandem::kernels::cuda
