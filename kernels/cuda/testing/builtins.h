// The variables that CUDA gives to every thread, under their own names. RunGrid sets them.
#ifndef TANDEM_KERNELS_CUDA_TESTING_BUILTINS_H_
#define TANDEM_KERNELS_CUDA_TESTING_BUILTINS_H_

#include "kernels/cuda/testing/vector_types.h"

inline thread_local uint3 threadIdx;
inline thread_local uint3 blockIdx;
inline thread_local dim3 blockDim;
inline thread_local dim3 gridDim;

#endif  // TANDEM_KERNELS_CUDA_TESTING_BUILTINS_H_
