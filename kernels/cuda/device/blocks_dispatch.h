// Dispatch from a weight's runtime type to the template instantiated for it. Host code.
//
//   DispatchType(weight.type, [&](auto type) { stream.Launch("x", &Kernel<type()>, ...); });
#ifndef TANDEM_KERNELS_CUDA_DEVICE_BLOCKS_DISPATCH_H_
#define TANDEM_KERNELS_CUDA_DEVICE_BLOCKS_DISPATCH_H_

#include <type_traits>
#include <utility>

#include "common/tensor/type.h"

namespace tandem::kernels::cuda {

// Whether values are plain floats or halves rather than blocks.
constexpr bool IsPlain(tensor::Type type) {
  return type == tensor::Type::kF32 || type == tensor::Type::kF16 || type == tensor::Type::kBF16;
}

template <tensor::Type... kTypes>
struct TypeList {
  static constexpr bool Has(tensor::Type type) { return ((type == kTypes) || ...); }
  // Calls f with std::integral_constant<tensor::Type, type> if the list has the type; returns
  // whether.
  template <typename F>
  static bool Dispatch(tensor::Type type, F&& f) {
    return ((type == kTypes && (f(std::integral_constant<tensor::Type, kTypes>()), true)) || ...);
  }
};

using PlainTypes = TypeList<tensor::Type::kF32, tensor::Type::kF16, tensor::Type::kBF16>;
// By kind, so that files of kernels compile in parallel.
using BlockTypesOf32 = TypeList<tensor::Type::kQ4_0, tensor::Type::kQ4_1, tensor::Type::kQ5_0,
                                tensor::Type::kQ5_1, tensor::Type::kQ8_0, tensor::Type::kIQ4_NL,
                                tensor::Type::kMXFP4, tensor::Type::kNVFP4>;
using BlockTypesOf256 = TypeList<tensor::Type::kQ2_K, tensor::Type::kQ3_K, tensor::Type::kQ4_K,
                                 tensor::Type::kQ5_K, tensor::Type::kQ6_K, tensor::Type::kIQ4_XS>;
using BlockTypesOfGrids =
    TypeList<tensor::Type::kIQ1_S, tensor::Type::kIQ1_M, tensor::Type::kIQ2_XXS,
             tensor::Type::kIQ2_XS, tensor::Type::kIQ2_S, tensor::Type::kIQ3_XXS,
             tensor::Type::kIQ3_S>;
using BlockTypesOfFewBits =
    TypeList<tensor::Type::kQ1_0, tensor::Type::kQ2_0, tensor::Type::kTQ1_0, tensor::Type::kTQ2_0>;

// The block-quantised types.
template <typename F>
void DispatchBlockType(tensor::Type type, F&& f) {
  if (BlockTypesOf32::Dispatch(type, f) || BlockTypesOf256::Dispatch(type, f) ||
      BlockTypesOfGrids::Dispatch(type, f)) {
    return;
  }
  BlockTypesOfFewBits::Dispatch(type, std::forward<F>(f));
}
// Every type that weights can have; does nothing for others, which PlaceWeight rejects.
template <typename F>
void DispatchType(tensor::Type type, F&& f) {
  if (!PlainTypes::Dispatch(type, f)) DispatchBlockType(type, std::forward<F>(f));
}

}  // namespace tandem::kernels::cuda

#endif  // TANDEM_KERNELS_CUDA_DEVICE_BLOCKS_DISPATCH_H_
