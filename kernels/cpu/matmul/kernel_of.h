// The instruction set that a file of kernels is compiled for, and the kernel of one weight format
// for that set. Include only from files that are compiled for a set.
#ifndef TANDEM_KERNELS_CPU_MATMUL_KERNEL_OF_H_
#define TANDEM_KERNELS_CPU_MATMUL_KERNEL_OF_H_

#include "kernels/cpu/matmul/families.h"
#include "kernels/cpu/matmul/multiply.h"
#include "kernels/cpu/matmul/product.h"
#include "kernels/cpu/matmul/simd_avx2.h"
#include "kernels/cpu/matmul/simd_avx512.h"

#if defined(TANDEM_MATMUL_ISA)

namespace tandem::kernels::cpu::TANDEM_MATMUL_ISA {

#if defined(__AVX512BF16__)
using Simd = Avx512Bf16;
#elif defined(__AVX512VNNI__)
using Simd = Avx512<true>;
#elif defined(__AVX512F__)
using Simd = Avx512<false>;
#elif defined(__AVXVNNI__)
using Simd = Avx2<true>;
#else
using Simd = Avx2<false>;
#endif

// `F` is a chunk format: see multiply.h.
template <class F>
constexpr Kernel KernelOf() {
  using M = Multiply<Simd, F>;
  return {F::kActivations, &M::Run, &M::ScratchBytes, &M::Transpose};
}

}  // namespace tandem::kernels::cpu::TANDEM_MATMUL_ISA

#endif  // TANDEM_MATMUL_ISA

#endif  // TANDEM_KERNELS_CPU_MATMUL_KERNEL_OF_H_
