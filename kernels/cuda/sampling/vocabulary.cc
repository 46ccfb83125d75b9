#include "kernels/cuda/sampling/vocabulary.h"

#include <string>

namespace tandem::kernels::cuda {

bool CheckVocabulary(Stream& stream, uint32_t vocab, uint32_t most) {
  if (vocab <= most) return true;
  stream.NoteError("a vocabulary of " + std::to_string(vocab) + " ids, at most " +
                   std::to_string(most) + " can be selected from");
  return false;
}

}  // namespace tandem::kernels::cuda
