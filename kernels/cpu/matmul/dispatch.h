// Which kernels run on this machine.
#ifndef TANDEM_KERNELS_CPU_MATMUL_DISPATCH_H_
#define TANDEM_KERNELS_CPU_MATMUL_DISPATCH_H_

#include <vector>

#include "common/tensor/type.h"
#include "kernels/cpu/isa.h"
#include "kernels/cpu/matmul/product.h"

namespace tandem::kernels::cpu {

// The best kernels of `isa`: avx512 uses VNNI if the machine has it, and BF16 if that is faster.
const MatMulKernels& BestKernels(Isa isa);

// Every table that this machine can run, the best one last, for tests and benchmarks.
std::vector<const MatMulKernels*> RunnableKernels();

// How products that wait for memory fetch panels fastest on this machine.
PanelAhead BestPanelAhead();

// The kernel for weights of `type`; null where there is none. Its activations are as it says; those
// of HeadMatMul stay floats for plain weights, whose kernels are in MatMulKernels::floats.
const Kernel* FindKernel(const MatMulKernels& kernels, tensor::Type type);

}  // namespace tandem::kernels::cpu

#endif  // TANDEM_KERNELS_CPU_MATMUL_DISPATCH_H_
