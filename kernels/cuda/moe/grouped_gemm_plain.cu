// Floor: 2 * choices * rows * col_count operations on tensor cores; reads the rows of every expert
// once per piece.
#include "kernels/cuda/moe/grouped_gemm_kernel.h"

namespace tandem::kernels::cuda {

void EncodeGroupedGemm(Stream& stream, const GroupedGemmArgs& args) {
  const tensor::Type type = args.p.projections[0].weight.type;
  if (LaunchGroupedGemmOf32(stream, type, args) || LaunchGroupedGemmOf256(stream, type, args) ||
      LaunchGroupedGemmOfGrids(stream, type, args) ||
      LaunchGroupedGemmOfFewBits(stream, type, args)) {
    return;
  }
  using Types = TypeList<tensor::Type::kF16, tensor::Type::kBF16>;
  Types::Dispatch(type, [&](auto t) { LaunchGroupedGemm<decltype(t)::value>(stream, args); });
}

}  // namespace tandem::kernels::cuda
