// <cuda_runtime.h> for a plain C++ compiler: this folder stands in the place of the toolkit's
// headers when kernels are built to run under emulation.
#ifndef TANDEM_KERNELS_CUDA_TESTING_TOOLKIT_CUDA_RUNTIME_H_
#define TANDEM_KERNELS_CUDA_TESTING_TOOLKIT_CUDA_RUNTIME_H_

#include "kernels/cuda/testing/language.h"
#include "kernels/cuda/testing/runtime.h"

#endif  // TANDEM_KERNELS_CUDA_TESTING_TOOLKIT_CUDA_RUNTIME_H_
