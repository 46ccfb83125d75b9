// For Sample and LogProbs: threads of a block, and the largest vocabulary.
#ifndef TANDEM_KERNELS_CUDA_SAMPLING_VOCABULARY_H_
#define TANDEM_KERNELS_CUDA_SAMPLING_VOCABULARY_H_

#include <cstdint>

#include "kernels/cuda/stream.h"

namespace tandem::kernels::cuda {

inline constexpr uint32_t kFewVocabularyThreads = 128;
inline constexpr uint32_t kManyVocabularyThreads = 1024;
// Vocabulary size up to which few threads suffice.
inline constexpr uint32_t kSmallVocabulary = 2048;
// The largest that Sample and LogProbs take, as device/select_key.h.
inline constexpr uint32_t kMostVocabulary = 1u << 20;

// Records an error with both numbers if there are more ids than `most`.
bool CheckVocabulary(Stream& stream, uint32_t vocab, uint32_t most);

}  // namespace tandem::kernels::cuda

#endif  // TANDEM_KERNELS_CUDA_SAMPLING_VOCABULARY_H_
