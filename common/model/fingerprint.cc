#include "common/model/fingerprint.h"

#include <xxhash.h>

namespace tandem::model {

uint64_t ModelFingerprint(const gguf::File& file) {
  const std::span<const std::byte> header = file.header_bytes();
  const uint64_t hash = XXH3_64bits_withSeed(header.data(), header.size(), file.size_bytes());
  return hash == 0 ? 1 : hash;
}

}  // namespace tandem::model
