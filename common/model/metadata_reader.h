// MetadataReader: metadata keys of one architecture, as checked sizes and numbers.
#ifndef TANDEM_COMMON_MODEL_METADATA_READER_H_
#define TANDEM_COMMON_MODEL_METADATA_READER_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "common/gguf/metadata.h"

namespace tandem::model {

// Keys are those of common/gguf/keys.h, with "{arch}". Borrows the metadata. NOT_FOUND for a
// missing required key, INVALID_ARGUMENT for an invalid value.
class MetadataReader {
 public:
  MetadataReader(const gguf::Metadata& metadata, std::string_view architecture)
      : metadata_(metadata), architecture_(architecture) {}

  bool Has(std::string_view key) const { return metadata_.Has(Full(key)); }
  // Whether it is there and a list, not one value.
  bool IsList(std::string_view key) const;

  // At least 1.
  absl::StatusOr<uint32_t> Size(std::string_view key) const;
  absl::StatusOr<uint32_t> Size(std::string_view key, uint32_t otherwise) const;
  // The same for all layers: one value, or a list of equal ones. UNIMPLEMENTED if they differ.
  absl::StatusOr<uint32_t> EqualSize(std::string_view key, uint32_t otherwise) const;
  // Any count, 0 if the key is missing.
  absl::StatusOr<uint32_t> Count(std::string_view key) const;
  // A list, or one value; each at least 1, and at least one of them.
  absl::StatusOr<std::vector<uint32_t>> SizeList(std::string_view key) const;
  // One value per layer: a list of as many, or one for all. Each at least 1.
  absl::StatusOr<std::vector<uint32_t>> SizePerLayer(std::string_view key, uint32_t layers) const;
  // A list with a flag per layer.
  absl::StatusOr<std::vector<bool>> FlagPerLayer(std::string_view key, uint32_t layers) const;
  absl::StatusOr<float> Float(std::string_view key) const;
  // 0 if the key is missing; else finite and not negative.
  absl::StatusOr<float> NonNegative(std::string_view key) const;
  // A list of `count` integers from 0 on.
  absl::StatusOr<std::vector<uint32_t>> Counts(std::string_view key, uint32_t count) const;
  absl::StatusOr<bool> Bool(std::string_view key, bool otherwise) const;

  // The key as spelled in the file.
  std::string Full(std::string_view key) const;

 private:
  const gguf::Metadata& metadata_;
  std::string_view architecture_;
};

}  // namespace tandem::model

#endif  // TANDEM_COMMON_MODEL_METADATA_READER_H_
