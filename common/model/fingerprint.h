// A hash of a model file, by which coordinator and workers check that they use the same model.
#ifndef TANDEM_COMMON_MODEL_FINGERPRINT_H_
#define TANDEM_COMMON_MODEL_FINGERPRINT_H_

#include <cstdint>

#include "common/gguf/file.h"

namespace tandem::model {

// XXH3 (64 bits, https://github.com/Cyan4973/xxHash) of everything before the tensors' data, and
// the file's size; for every file of a split model in order. It reads no weights, so it is cheap
// but does not detect files that differ only in weights. Never 0.
uint64_t ModelFingerprint(const gguf::File& file);

// Of whole files in order, which are read: `before` is that of those before this one, 0 if it is
// the first. Never 0.
uint64_t AddContents(uint64_t before, const gguf::File& file);

}  // namespace tandem::model

#endif  // TANDEM_COMMON_MODEL_FINGERPRINT_H_
