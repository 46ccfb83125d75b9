// The kernels of Sample, in the order in which they are encoded. kThreads is one of
// sampling/vocabulary.h's.
#ifndef TANDEM_KERNELS_CUDA_SAMPLING_SAMPLE_KERNELS_H_
#define TANDEM_KERNELS_CUDA_SAMPLING_SAMPLE_KERNELS_H_

#include <cstdint>

#include "kernels/cuda/sampling/sample_task.h"
#include "kernels/cuda/sampling/vocabulary.h"
#include "kernels/cuda/stream.h"

namespace tandem::kernels::cuda {

// Adjusts logits, finds the largest of every piece, and clears what DrawIds counts in.
template <uint32_t kThreads>
void EncodeFindLargest(Stream& stream, const SampleTask& task);

// Weighs, filters and draws.
template <uint32_t kThreads>
void EncodeDrawIds(Stream& stream, const SampleTask& task);

}  // namespace tandem::kernels::cuda

#endif  // TANDEM_KERNELS_CUDA_SAMPLING_SAMPLE_KERNELS_H_
