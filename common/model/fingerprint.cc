#include "common/model/fingerprint.h"

#include <xxhash.h>

namespace tandem::model {

uint64_t ModelFingerprint(const gguf::File& file) {
  uint64_t hash = 0;
  for (const gguf::FilePart& part : file.parts()) {
    const std::span<const std::byte> header = part.header_bytes();
    hash = XXH3_64bits_withSeed(header.data(), header.size(), hash + part.bytes.size());
  }
  return hash == 0 ? 1 : hash;
}

uint64_t AddContents(uint64_t before, const gguf::File& file) {
  uint64_t hash = before;
  for (const gguf::FilePart& part : file.parts()) {
    hash = XXH3_64bits_withSeed(part.bytes.data(), part.bytes.size(), hash);
  }
  return hash == 0 ? 1 : hash;
}

}  // namespace tandem::model
