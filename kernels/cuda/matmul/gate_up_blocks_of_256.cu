// Floor: the bytes of both weights are read once; 1.5 bytes per activated value written. In tiles
// 2 * tokens * rows * columns operations on tensor cores, in bytes.
#include "kernels/cuda/device/blocks_dispatch.h"
#include "kernels/cuda/matmul/gate_up_blocks.h"

namespace tandem::kernels::cuda {

bool LaunchGateUpOf256(Stream& stream, tensor::Type type, const GateUpTask& task) {
  return BlockTypesOf256::Dispatch(type,
                                   [&](auto t) { LaunchGateUp<decltype(t)::value>(stream, task); });
}

}  // namespace tandem::kernels::cuda
