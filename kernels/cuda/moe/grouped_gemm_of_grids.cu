// Floor: 2 * choices * rows * col_count operations on tensor cores; reads the rows of every expert
// once per piece.
#include "kernels/cuda/moe/grouped_gemm_kernel.h"

namespace tandem::kernels::cuda {

bool LaunchGroupedGemmOfGrids(Stream& stream, tensor::Type type, const GroupedGemmArgs& args) {
  return BlockTypesOfGrids::Dispatch(
      type, [&](auto t) { LaunchGroupedGemm<decltype(t)::value>(stream, args); });
}

}  // namespace tandem::kernels::cuda
