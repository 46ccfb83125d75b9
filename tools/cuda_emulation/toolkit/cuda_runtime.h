// <cuda_runtime.h> for a plain C++ compiler: this folder replaces the toolkit's headers when
// kernels are built for the emulation.
#ifndef TANDEM_TOOLS_CUDA_EMULATION_TOOLKIT_CUDA_RUNTIME_H_
#define TANDEM_TOOLS_CUDA_EMULATION_TOOLKIT_CUDA_RUNTIME_H_

#include "tools/cuda_emulation/language.h"
#include "tools/cuda_emulation/runtime.h"

#endif  // TANDEM_TOOLS_CUDA_EMULATION_TOOLKIT_CUDA_RUNTIME_H_
