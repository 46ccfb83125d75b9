// A number that tells two model files apart, so that coordinator and workers know they speak of the
// same one.
#ifndef TANDEM_COMMON_MODEL_FINGERPRINT_H_
#define TANDEM_COMMON_MODEL_FINGERPRINT_H_

#include <cstdint>

#include "common/gguf/file.h"

namespace tandem::model {

// XXH3 (64 bits, https://github.com/Cyan4973/xxHash) of everything before the tensors' data, and
// the file's size; of every file of a split model in turn. Reads no weights, so it is cheap, and
// blind to files that differ in weights alone. Never 0.
uint64_t ModelFingerprint(const gguf::File& file);

}  // namespace tandem::model

#endif  // TANDEM_COMMON_MODEL_FINGERPRINT_H_
