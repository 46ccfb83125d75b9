// CUDA's built-in variables of every thread, under their own names. RunGrid sets them.
#ifndef TANDEM_TOOLS_CUDA_EMULATION_BUILTINS_H_
#define TANDEM_TOOLS_CUDA_EMULATION_BUILTINS_H_

#include "tools/cuda_emulation/vector_types.h"

inline thread_local uint3 threadIdx;
inline thread_local uint3 blockIdx;
inline thread_local dim3 blockDim;
inline thread_local dim3 gridDim;

#endif  // TANDEM_TOOLS_CUDA_EMULATION_BUILTINS_H_
