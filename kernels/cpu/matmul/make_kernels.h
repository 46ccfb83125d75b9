// The table of kernels of one instruction set.
#ifndef TANDEM_KERNELS_CPU_MATMUL_MAKE_KERNELS_H_
#define TANDEM_KERNELS_CPU_MATMUL_MAKE_KERNELS_H_

#include "kernels/cpu/matmul/float_chunk.h"
#include "kernels/cpu/matmul/multiply.h"
#include "kernels/cpu/matmul/product.h"
#include "kernels/cpu/matmul/quantised_chunk.h"
#include "kernels/cpu/matmul/unpack_q4_0.h"
#include "kernels/cpu/matmul/unpack_q4_k.h"
#include "kernels/cpu/matmul/unpack_q5_0.h"
#include "kernels/cpu/matmul/unpack_q6_k.h"
#include "kernels/cpu/matmul/unpack_q8_0.h"

namespace tandem::kernels::cpu {

template <class F>
constexpr Kernel KernelOf() {
  return {&F::Run, &F::ScratchBytes};
}

template <class S>
constexpr Kernels MakeKernels(const char* name) {
  return {
      .name = name,
      .few_tokens = S::kFewTokens,
      .f32 = KernelOf<Multiply<S, FloatChunk<S, UnpackF32<S>>>>(),
      .f16 = KernelOf<Multiply<S, FloatChunk<S, UnpackF16<S>>>>(),
      .bf16 = KernelOf<Multiply<S, FloatChunk<S, UnpackBF16<S>>>>(),
      .q8_0 = KernelOf<Multiply<S, QuantisedChunk<S, UnpackQ8_0<S>>>>(),
      .q4_0 = KernelOf<Multiply<S, QuantisedChunk<S, UnpackQ4_0<S>>>>(),
      .q5_0 = KernelOf<Multiply<S, QuantisedChunk<S, UnpackQ5_0<S>>>>(),
      .q4_k = KernelOf<Multiply<S, QuantisedChunk<S, UnpackQ4_K<S>>>>(),
      .q6_k = KernelOf<Multiply<S, QuantisedChunk<S, UnpackQ6_K<S>>>>(),
  };
}

}  // namespace tandem::kernels::cpu

#endif  // TANDEM_KERNELS_CPU_MATMUL_MAKE_KERNELS_H_
