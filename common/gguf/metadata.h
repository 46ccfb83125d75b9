// The key/value pairs of a GGUF file, with typed getters whose errors name the key, what was needed
// and what was found.
//
// Getters give NOT_FOUND for a missing key and INVALID_ARGUMENT for a value of another type or out
// of range. All views are valid as long as the file's bytes. Thread-safe: never changes after
// Create.
#ifndef TANDEM_COMMON_GGUF_METADATA_H_
#define TANDEM_COMMON_GGUF_METADATA_H_

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "common/gguf/value.h"

namespace tandem::gguf {

struct Entry {
  std::string_view key;
  Value value;
};

class Metadata {
 public:
  Metadata() = default;
  // INVALID_ARGUMENT naming a duplicate key.
  static absl::StatusOr<Metadata> Create(std::vector<Entry> entries);

  // In the file's order.
  const std::vector<Entry>& entries() const { return entries_; }
  // Null if there is no such key.
  const Value* Find(std::string_view key) const;
  bool Has(std::string_view key) const { return Find(key) != nullptr; }

  // Integers of any width and sign count as long as the value fits; floats never do.
  absl::StatusOr<uint32_t> GetUint32(std::string_view key) const;
  absl::StatusOr<uint64_t> GetUint64(std::string_view key) const;
  // float32 or float64. May be NaN or infinite: the caller checks the range.
  absl::StatusOr<float> GetFloat(std::string_view key) const;
  absl::StatusOr<bool> GetBool(std::string_view key) const;
  absl::StatusOr<std::string_view> GetString(std::string_view key) const;
  absl::StatusOr<StringArray> GetStrings(std::string_view key) const;
  // An array of exactly that element type.
  absl::StatusOr<NumberArray<float>> GetFloats(std::string_view key) const;
  // int32; uint32 is accepted too, its bits unchanged.
  absl::StatusOr<NumberArray<int32_t>> GetInt32s(std::string_view key) const;
  // An array of integers of any width and sign, or one integer, which is a list of one.
  absl::StatusOr<std::vector<uint32_t>> GetUint32List(std::string_view key) const;
  // An array of bools.
  absl::StatusOr<std::vector<bool>> GetBools(std::string_view key) const;

  // Empty if the key is missing; still an error if its value has another type.
  absl::StatusOr<std::optional<uint32_t>> FindUint32(std::string_view key) const;
  absl::StatusOr<std::optional<float>> FindFloat(std::string_view key) const;
  absl::StatusOr<std::optional<bool>> FindBool(std::string_view key) const;
  absl::StatusOr<std::optional<std::string_view>> FindString(std::string_view key) const;

 private:
  std::vector<Entry> entries_;
  std::vector<uint32_t> by_key_;  // indices of entries_, sorted by key
};

}  // namespace tandem::gguf

#endif  // TANDEM_COMMON_GGUF_METADATA_H_
