#include "common/model/metadata_reader.h"

#include <algorithm>
#include <cmath>
#include <optional>

#include "absl/strings/str_cat.h"
#include "common/base/status.h"
#include "common/gguf/keys.h"
#include "common/gguf/quote.h"

namespace tandem::model {
namespace {

absl::Status CheckCount(std::string_view key, size_t found, uint32_t layers) {
  if (found == layers) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("key ", gguf::Quoted(key), ": needed ", layers,
                                                 " values, one per layer, found ", found));
}

}  // namespace

std::string MetadataReader::Full(std::string_view key) const {
  return gguf::KeyFor(key, architecture_);
}

bool MetadataReader::IsList(std::string_view key) const {
  const gguf::Value* value = metadata_.Find(Full(key));
  return value != nullptr && value->type == gguf::ValueType::kArray;
}

absl::StatusOr<uint32_t> MetadataReader::Size(std::string_view key) const {
  const std::string full = Full(key);
  TANDEM_ASSIGN_OR_RETURN(const uint32_t size, metadata_.GetUint32(full));
  if (size == 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("key ", gguf::Quoted(full), ": needed at least 1, found 0"));
  }
  return size;
}

absl::StatusOr<uint32_t> MetadataReader::Size(std::string_view key, uint32_t otherwise) const {
  if (!Has(key)) return otherwise;
  return Size(key);
}

absl::StatusOr<uint32_t> MetadataReader::Count(std::string_view key) const {
  TANDEM_ASSIGN_OR_RETURN(const std::optional<uint32_t> count, metadata_.FindUint32(Full(key)));
  return count.value_or(0);
}

absl::StatusOr<std::vector<uint32_t>> MetadataReader::SizeList(std::string_view key) const {
  const std::string full = Full(key);
  TANDEM_ASSIGN_OR_RETURN(std::vector<uint32_t> sizes, metadata_.GetUint32List(full));
  if (sizes.empty()) {
    return absl::InvalidArgumentError(absl::StrCat("key ", gguf::Quoted(full), " is empty"));
  }
  if (std::find(sizes.begin(), sizes.end(), 0u) != sizes.end()) {
    return absl::InvalidArgumentError(
        absl::StrCat("key ", gguf::Quoted(full), ": needed at least 1, found 0"));
  }
  return sizes;
}

absl::StatusOr<uint32_t> MetadataReader::EqualSize(std::string_view key, uint32_t otherwise) const {
  if (!Has(key)) return otherwise;
  TANDEM_ASSIGN_OR_RETURN(const std::vector<uint32_t> sizes, SizeList(key));
  for (const uint32_t size : sizes) {
    if (size == sizes[0]) continue;
    return absl::UnimplementedError(absl::StrCat("key ", gguf::Quoted(Full(key)),
                                                 ": needed one value for all layers, found ",
                                                 sizes[0], " and ", size));
  }
  return sizes[0];
}

absl::StatusOr<std::vector<uint32_t>> MetadataReader::SizePerLayer(std::string_view key,
                                                                   uint32_t layers) const {
  TANDEM_ASSIGN_OR_RETURN(std::vector<uint32_t> sizes, SizeList(key));
  if (sizes.size() == 1) sizes.resize(layers, sizes[0]);
  TANDEM_RETURN_IF_ERROR(CheckCount(Full(key), sizes.size(), layers));
  return sizes;
}

absl::StatusOr<std::vector<bool>> MetadataReader::FlagPerLayer(std::string_view key,
                                                               uint32_t layers) const {
  const std::string full = Full(key);
  TANDEM_ASSIGN_OR_RETURN(std::vector<bool> flags, metadata_.GetBools(full));
  TANDEM_RETURN_IF_ERROR(CheckCount(full, flags.size(), layers));
  return flags;
}

absl::StatusOr<float> MetadataReader::Float(std::string_view key) const {
  return metadata_.GetFloat(Full(key));
}

absl::StatusOr<float> MetadataReader::NonNegative(std::string_view key) const {
  const std::string full = Full(key);
  TANDEM_ASSIGN_OR_RETURN(const std::optional<float> value, metadata_.FindFloat(full));
  if (!value.has_value()) return 0.0f;
  if (*value >= 0.0f && std::isfinite(*value)) return *value;
  return absl::InvalidArgumentError(
      absl::StrCat("key ", gguf::Quoted(full), ": needed a number from 0 on, found ", *value));
}

absl::StatusOr<std::vector<uint32_t>> MetadataReader::Counts(std::string_view key,
                                                             uint32_t count) const {
  const std::string full = Full(key);
  TANDEM_ASSIGN_OR_RETURN(std::vector<uint32_t> counts, metadata_.GetUint32List(full));
  if (counts.size() == count) return counts;
  return absl::InvalidArgumentError(absl::StrCat("key ", gguf::Quoted(full), ": needed ", count,
                                                 " values, found ", counts.size()));
}

absl::StatusOr<bool> MetadataReader::Bool(std::string_view key, bool otherwise) const {
  TANDEM_ASSIGN_OR_RETURN(const std::optional<bool> value, metadata_.FindBool(Full(key)));
  return value.value_or(otherwise);
}

}  // namespace tandem::model
