#include "common/gguf/file.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/status.h"
#include "common/gguf/cursor.h"
#include "common/gguf/keys.h"
#include "common/gguf/parse_directory.h"
#include "common/gguf/parse_metadata.h"
#include "common/gguf/quote.h"

namespace tandem::gguf {
namespace {

struct Header {
  uint32_t version = 0;
  uint64_t num_tensors = 0;
  uint64_t num_keys = 0;
};

absl::Status CheckMagic(std::span<const std::byte> bytes) {
  if (bytes.size() < 4) {
    return absl::InvalidArgumentError(
        absl::StrCat("not a GGUF file: it has only ", bytes.size(), " bytes"));
  }
  const std::string_view magic(reinterpret_cast<const char*>(bytes.data()), 4);
  if (magic == "GGUF") return absl::OkStatus();
  if (magic == "FUGG") {
    return absl::InvalidArgumentError("byte-swapped (big-endian) GGUF files are not supported");
  }
  return absl::InvalidArgumentError(
      absl::StrCat("not a GGUF file: needed the magic \"GGUF\", found ", Quoted(magic)));
}

absl::StatusOr<Header> ParseHeader(Cursor& cursor) {
  Header header;
  uint32_t magic = 0;
  if (!cursor.Read(&magic) || !cursor.Read(&header.version)) {
    return absl::InvalidArgumentError("the file ends inside its header");
  }
  if (header.version == __builtin_bswap32(2) || header.version == __builtin_bswap32(3)) {
    return absl::InvalidArgumentError("byte-swapped (big-endian) GGUF files are not supported");
  }
  if (header.version != 2 && header.version != 3) {
    return absl::InvalidArgumentError(
        absl::StrCat("needed GGUF version 2 or 3, found ", header.version));
  }
  if (!cursor.Read(&header.num_tensors) || !cursor.Read(&header.num_keys)) {
    return absl::InvalidArgumentError("the file ends inside its header");
  }
  return header;
}

absl::StatusOr<uint64_t> Alignment(const Metadata& metadata) {
  constexpr uint64_t kDefault = 32;
  const Value* value = metadata.Find(keys::kAlignment);
  if (value == nullptr) return kDefault;
  if (value->type != ValueType::kUint32) {
    return absl::InvalidArgumentError(absl::StrCat("key ", Quoted(keys::kAlignment),
                                                   ": needed uint32, found ", value->TypeName()));
  }
  TANDEM_ASSIGN_OR_RETURN(const uint32_t alignment, metadata.GetUint32(keys::kAlignment));
  // The format asks for a multiple of 8, which is also what reading floats in place needs.
  if (!std::has_single_bit(alignment) || alignment < 8) {
    return absl::InvalidArgumentError(absl::StrCat("key ", Quoted(keys::kAlignment),
                                                   ": needed a power of two of at least 8, found ",
                                                   alignment));
  }
  return alignment;
}

}  // namespace

absl::StatusOr<File> File::Open(const std::string& path) {
  TANDEM_ASSIGN_OR_RETURN(MappedFile mapping, MappedFile::Open(path));
  TANDEM_ASSIGN_OR_RETURN(File file, Parse(mapping.bytes()));
  file.mapping_ = std::move(mapping);
  return file;
}

absl::StatusOr<File> File::Parse(std::span<const std::byte> bytes) {
  TANDEM_RETURN_IF_ERROR(CheckMagic(bytes));
  Cursor cursor(bytes);
  TANDEM_ASSIGN_OR_RETURN(const Header header, ParseHeader(cursor));
  File file;
  file.bytes_ = bytes;
  file.version_ = header.version;
  TANDEM_ASSIGN_OR_RETURN(file.metadata_, ParseMetadata(header.num_keys, cursor));
  TANDEM_ASSIGN_OR_RETURN(const uint64_t alignment, Alignment(file.metadata_));
  TANDEM_ASSIGN_OR_RETURN(file.tensors_, ParseDirectory(header.num_tensors, cursor));
  file.header_size_ = cursor.position();
  TANDEM_RETURN_IF_ERROR(PlaceTensors(bytes, file.header_size_, alignment, file.tensors_));
  TANDEM_ASSIGN_OR_RETURN(file.by_name_, SortByName(file.tensors_));
  return file;
}

const TensorInfo* File::FindTensor(std::string_view name) const {
  const auto at = std::lower_bound(
      by_name_.begin(), by_name_.end(), name,
      [&](uint32_t i, std::string_view wanted) { return tensors_[i].name < wanted; });
  if (at == by_name_.end() || tensors_[*at].name != name) return nullptr;
  return &tensors_[*at];
}

}  // namespace tandem::gguf
