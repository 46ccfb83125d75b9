// A hash of a model file, by which coordinator and workers check that they use the same model.
#ifndef TANDEM_COMMON_MODEL_FINGERPRINT_H_
#define TANDEM_COMMON_MODEL_FINGERPRINT_H_

#include <cstdint>

#include "common/gguf/file.h"

namespace tandem::model {

// XXH3 (64 bits, https://github.com/Cyan4973/xxHash) of everything before the tensors' data, of
// 64 pieces of the data that are spread over it, and of the file's size; for every file of a split
// model in order. So it is cheap, and differs for another conversion of the same model, but not for
// weights that differ in a few places. Never 0.
uint64_t ModelFingerprint(const gguf::File& file);

// Of whole files in order, which are read: `before` is that of those before this one, 0 if it is
// the first. Never 0.
uint64_t AddContents(uint64_t before, const gguf::File& file);

}  // namespace tandem::model

#endif  // TANDEM_COMMON_MODEL_FINGERPRINT_H_
