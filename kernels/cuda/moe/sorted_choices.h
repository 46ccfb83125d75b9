// ExpertMatMul for more than a few tokens: products of choices sorted by expert.
#ifndef TANDEM_KERNELS_CUDA_MOE_SORTED_CHOICES_H_
#define TANDEM_KERNELS_CUDA_MOE_SORTED_CHOICES_H_

#include "kernels/cuda/stream.h"
#include "kernels/ops.h"

namespace tandem::kernels::cuda {

// All projections have the same type, shape and window.
void EncodeSortedChoices(Stream& stream, const ExpertMatMulParams& params);

}  // namespace tandem::kernels::cuda

#endif  // TANDEM_KERNELS_CUDA_MOE_SORTED_CHOICES_H_
