#include "common/gguf/file.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <iterator>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/status.h"
#include "common/gguf/cursor.h"
#include "common/gguf/keys.h"
#include "common/gguf/parse_directory.h"
#include "common/gguf/parse_metadata.h"
#include "common/gguf/quote.h"
#include "common/gguf/split.h"

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
  // The format requires a multiple of 8, which reading floats in place needs too.
  if (!std::has_single_bit(alignment) || alignment < 8) {
    return absl::InvalidArgumentError(absl::StrCat("key ", Quoted(keys::kAlignment),
                                                   ": needed a power of two of at least 8, found ",
                                                   alignment));
  }
  return alignment;
}

}  // namespace

absl::StatusOr<File> File::Open(const std::string& path) {
  TANDEM_ASSIGN_OR_RETURN(File file, OpenPart(path));
  TANDEM_RETURN_IF_ERROR(file.OpenOthers(path));
  return file;
}

absl::StatusOr<File> File::Parse(std::span<const std::byte> bytes) {
  TANDEM_ASSIGN_OR_RETURN(File file, ParsePart(bytes));
  TANDEM_ASSIGN_OR_RETURN(const SplitKeys keys, ReadSplitKeys(file.metadata_));
  if (!keys.split()) return file;
  return absl::InvalidArgumentError(absl::StrCat("this is file ", keys.number + 1, " of the ",
                                                 keys.count,
                                                 " that the model is split over, not all of it"));
}

absl::StatusOr<File> File::OpenPart(const std::string& path) {
  TANDEM_ASSIGN_OR_RETURN(MappedFile mapping, MappedFile::Open(path));
  TANDEM_ASSIGN_OR_RETURN(File file, ParsePart(mapping.bytes()));
  file.parts_.front().name = FileName(path);
  file.mappings_.push_back(std::move(mapping));
  return file;
}

absl::StatusOr<File> File::ParsePart(std::span<const std::byte> bytes) {
  TANDEM_RETURN_IF_ERROR(CheckMagic(bytes));
  Cursor cursor(bytes);
  TANDEM_ASSIGN_OR_RETURN(const Header header, ParseHeader(cursor));
  File file;
  file.version_ = header.version;
  TANDEM_ASSIGN_OR_RETURN(file.metadata_, ParseMetadata(header.num_keys, cursor));
  TANDEM_ASSIGN_OR_RETURN(const uint64_t alignment, Alignment(file.metadata_));
  TANDEM_ASSIGN_OR_RETURN(file.tensors_, ParseDirectory(header.num_tensors, cursor));
  const size_t header_size = cursor.position();
  file.parts_.push_back({.name = "", .bytes = bytes, .header_size = header_size});
  TANDEM_RETURN_IF_ERROR(PlaceTensors(bytes, header_size, alignment, file.tensors_));
  TANDEM_ASSIGN_OR_RETURN(file.by_name_, SortByName(file.tensors_));
  return file;
}

absl::Status File::OpenOthers(const std::string& path) {
  TANDEM_ASSIGN_OR_RETURN(const SplitKeys keys, ReadSplitKeys(metadata_));
  if (!keys.split()) return absl::OkStatus();
  TANDEM_RETURN_IF_ERROR(CheckFirstFile(path, keys));
  const SplitPath name = *SplitPath::Parse(path);
  for (uint32_t number = 1; number < keys.count; ++number) {
    const std::string other_path = name.Sibling(number);
    const auto context = [&] {
      return absl::StrCat("file ", number + 1, " of ", keys.count, ", ",
                          Quoted(FileName(other_path)));
    };
    absl::StatusOr<File> other = OpenPart(other_path);
    if (!other.ok()) return Annotate(other.status(), context());
    const absl::StatusOr<SplitKeys> other_keys = ReadSplitKeys(other->metadata_);
    if (!other_keys.ok()) return Annotate(other_keys.status(), context());
    TANDEM_RETURN_IF_ERROR(Annotate(CheckLaterFile(keys, number, *other_keys), context()));
    Take(*std::move(other));
  }
  if (tensors_.size() != keys.num_tensors) {
    return absl::InvalidArgumentError(absl::StrCat("key ", Quoted(keys::kSplitTensors), " states ",
                                                   keys.num_tensors, " tensors, but the ",
                                                   keys.count, " files have ", tensors_.size()));
  }
  absl::StatusOr<std::vector<uint32_t>> by_name = SortByName(tensors_);
  if (!by_name.ok()) {
    return Annotate(by_name.status(), absl::StrCat("over the ", keys.count, " files"));
  }
  by_name_ = *std::move(by_name);
  return absl::OkStatus();
}

void File::Take(File other) {
  tensors_.insert(tensors_.end(), other.tensors_.begin(), other.tensors_.end());
  std::move(other.parts_.begin(), other.parts_.end(), std::back_inserter(parts_));
  std::move(other.mappings_.begin(), other.mappings_.end(), std::back_inserter(mappings_));
}

uint64_t File::size_bytes() const {
  uint64_t bytes = 0;
  for (const FilePart& part : parts_) bytes += part.bytes.size();
  return bytes;
}

void File::DropPages(std::span<const std::byte> part) const {
  for (const MappedFile& mapping : mappings_) {
    const auto bytes = mapping.bytes();
    if (part.data() < bytes.data() || part.data() >= bytes.data() + bytes.size()) continue;
    mapping.DropPages(part.first(
        std::min(part.size(), static_cast<size_t>(bytes.data() + bytes.size() - part.data()))));
  }
}

const TensorInfo* File::FindTensor(std::string_view name) const {
  const auto at = std::lower_bound(
      by_name_.begin(), by_name_.end(), name,
      [&](uint32_t i, std::string_view wanted) { return tensors_[i].name < wanted; });
  if (at == by_name_.end() || tensors_[*at].name != name) return nullptr;
  return &tensors_[*at];
}

}  // namespace tandem::gguf
