// The kernels of LogProbs, in the order in which they are encoded. kThreads is one of
// sampling/vocabulary.h's.
#ifndef TANDEM_KERNELS_CUDA_SAMPLING_LOG_PROBS_KERNELS_H_
#define TANDEM_KERNELS_CUDA_SAMPLING_LOG_PROBS_KERNELS_H_

#include <cstdint>

#include "kernels/cuda/sampling/log_probs_task.h"
#include "kernels/cuda/sampling/vocabulary.h"
#include "kernels/cuda/stream.h"

namespace tandem::kernels::cuda {

// Reads every logit once.
template <uint32_t kThreads>
void EncodeReadPieces(Stream& stream, const LogProbsTask& task);

// Puts together what pieces have left.
template <uint32_t kThreads>
void EncodeWriteLogProbs(Stream& stream, const LogProbsTask& task);

}  // namespace tandem::kernels::cuda

#endif  // TANDEM_KERNELS_CUDA_SAMPLING_LOG_PROBS_KERNELS_H_
