// The table of kernels of one instruction set.
#ifndef TANDEM_KERNELS_CPU_MATMUL_MAKE_KERNELS_H_
#define TANDEM_KERNELS_CPU_MATMUL_MAKE_KERNELS_H_

#include "kernels/cpu/matmul/float_chunk.h"
#include "kernels/cpu/matmul/multiply.h"
#include "kernels/cpu/matmul/product.h"
#include "kernels/cpu/matmul/quantised_chunk.h"
#include "kernels/cpu/matmul/unpack_iq4_nl.h"
#include "kernels/cpu/matmul/unpack_iq4_xs.h"
#include "kernels/cpu/matmul/unpack_mxfp4.h"
#include "kernels/cpu/matmul/unpack_q2_k.h"
#include "kernels/cpu/matmul/unpack_q3_k.h"
#include "kernels/cpu/matmul/unpack_q4_0.h"
#include "kernels/cpu/matmul/unpack_q4_1.h"
#include "kernels/cpu/matmul/unpack_q4_k.h"
#include "kernels/cpu/matmul/unpack_q5_0.h"
#include "kernels/cpu/matmul/unpack_q5_1.h"
#include "kernels/cpu/matmul/unpack_q5_k.h"
#include "kernels/cpu/matmul/unpack_q6_k.h"
#include "kernels/cpu/matmul/unpack_q8_0.h"

namespace tandem::kernels::cpu {

template <class F>
constexpr Kernel KernelOf() {
  return {&F::Run, &F::ScratchBytes, &F::Transpose};
}

template <class S>
constexpr MatMulKernels MakeKernels(const char* name) {
  return {
      .name = name,
      .few_tokens = S::kFewTokens,
      .f32 = KernelOf<Multiply<S, FloatChunk<S, UnpackF32<S>>>>(),
      .f16 = KernelOf<Multiply<S, FloatChunk<S, UnpackF16<S>>>>(),
      .bf16 = KernelOf<Multiply<S, FloatChunk<S, UnpackBF16<S>>>>(),
      .q8_0 = KernelOf<Multiply<S, QuantisedChunk<S, UnpackQ8_0<S>>>>(),
      .q4_0 = KernelOf<Multiply<S, QuantisedChunk<S, UnpackQ4_0<S>>>>(),
      .q4_1 = KernelOf<Multiply<S, QuantisedChunk<S, UnpackQ4_1<S>>>>(),
      .q5_0 = KernelOf<Multiply<S, QuantisedChunk<S, UnpackQ5_0<S>>>>(),
      .q5_1 = KernelOf<Multiply<S, QuantisedChunk<S, UnpackQ5_1<S>>>>(),
      .q2_k = KernelOf<Multiply<S, QuantisedChunk<S, UnpackQ2_K<S>>>>(),
      .q3_k = KernelOf<Multiply<S, QuantisedChunk<S, UnpackQ3_K<S>>>>(),
      .q4_k = KernelOf<Multiply<S, QuantisedChunk<S, UnpackQ4_K<S>>>>(),
      .q5_k = KernelOf<Multiply<S, QuantisedChunk<S, UnpackQ5_K<S>>>>(),
      .q6_k = KernelOf<Multiply<S, QuantisedChunk<S, UnpackQ6_K<S>>>>(),
      .iq4_nl = KernelOf<Multiply<S, QuantisedChunk<S, UnpackIQ4_NL<S>>>>(),
      .iq4_xs = KernelOf<Multiply<S, QuantisedChunk<S, UnpackIQ4_XS<S>>>>(),
      .mxfp4 = KernelOf<Multiply<S, QuantisedChunk<S, UnpackMXFP4<S>>>>(),
  };
}

}  // namespace tandem::kernels::cpu

#endif  // TANDEM_KERNELS_CPU_MATMUL_MAKE_KERNELS_H_
