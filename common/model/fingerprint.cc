#include "common/model/fingerprint.h"

#include <xxhash.h>

namespace tandem::model {

namespace {

// Of 1 KiB: a page each, so that 64 of them read 256 KiB of a file.
constexpr size_t kPieces = 64;
constexpr size_t kPieceBytes = 1024;

uint64_t AddPieces(uint64_t hash, std::span<const std::byte> data) {
  if (data.size() <= kPieces * kPieceBytes) {
    return XXH3_64bits_withSeed(data.data(), data.size(), hash);
  }
  const size_t step = (data.size() - kPieceBytes) / (kPieces - 1);
  for (size_t i = 0; i < kPieces; ++i) {
    hash = XXH3_64bits_withSeed(data.data() + i * step, kPieceBytes, hash);
  }
  return hash;
}

}  // namespace

uint64_t ModelFingerprint(const gguf::File& file) {
  uint64_t hash = 0;
  for (const gguf::FilePart& part : file.parts()) {
    const std::span<const std::byte> bytes = part.bytes;
    const std::span<const std::byte> header = part.header_bytes();
    hash = XXH3_64bits_withSeed(header.data(), header.size(), hash + bytes.size());
    hash = AddPieces(hash, bytes.subspan(header.size()));
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
