// Ops that give each row of logits a block: how many threads it has, and which vocabularies are too
// large for them.
#ifndef TANDEM_KERNELS_CUDA_SAMPLING_VOCABULARY_H_
#define TANDEM_KERNELS_CUDA_SAMPLING_VOCABULARY_H_

#include <cstdint>

#include "kernels/cuda/stream.h"

namespace tandem::kernels::cuda {

inline constexpr uint32_t kFewVocabularyThreads = 128;
inline constexpr uint32_t kManyVocabularyThreads = 1024;
// Few threads are enough up to here.
inline constexpr uint32_t kSmallVocabulary = 2048;

// Notes an error with both numbers where there are more ids than `most`.
bool CheckVocabulary(Stream& stream, uint32_t vocab, uint32_t most);

}  // namespace tandem::kernels::cuda

#endif  // TANDEM_KERNELS_CUDA_SAMPLING_VOCABULARY_H_
