// Which kernels run on this machine.
#ifndef TANDEM_KERNELS_CPU_MATMUL_DISPATCH_H_
#define TANDEM_KERNELS_CPU_MATMUL_DISPATCH_H_

#include <vector>

#include "common/tensor/type.h"
#include "kernels/cpu/isa.h"
#include "kernels/cpu/matmul/product.h"

namespace tandem::kernels::cpu {

// The best kernels of `isa`: avx512 uses VNNI if the machine has it.
const MatMulKernels& BestKernels(Isa isa);

// Every table that this machine can run, for tests and benchmarks.
std::vector<const MatMulKernels*> RunnableKernels();

// The kernel for weights of `type`; null where there is none.
const Kernel* FindKernel(const MatMulKernels& kernels, tensor::Type type);

}  // namespace tandem::kernels::cpu

#endif  // TANDEM_KERNELS_CPU_MATMUL_DISPATCH_H_
