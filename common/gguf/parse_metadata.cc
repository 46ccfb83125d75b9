#include "common/gguf/parse_metadata.h"

#include <string_view>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/base/status.h"
#include "common/base/strings.h"
#include "common/gguf/quote.h"

namespace tandem::gguf {
namespace {

// The shortest pair: an empty key's length, the type, one byte of value.
constexpr uint64_t kMinPairBytes = 8 + 4 + 1;

absl::Status PastEnd(std::string_view key, std::string_view what, const Cursor& cursor) {
  return absl::InvalidArgumentError(absl::StrCat("key ", Quoted(key), ": ", Sv(what), " at byte ",
                                                 cursor.position(), " needs more than the ",
                                                 cursor.remaining(), " bytes left in the file"));
}

absl::Status ParseStringElements(std::string_view key, Value& array, Cursor& cursor) {
  const size_t start = cursor.position();
  // Every string takes at least its length field, so a larger count is rejected before iterating.
  if (!(CheckedSize(array.count) * sizeof(uint64_t)).FitsIn(cursor.remaining())) {
    return PastEnd(key, absl::StrCat("an array of ", array.count, " strings"), cursor);
  }
  std::string_view text;
  for (uint64_t i = 0; i < array.count; ++i) {
    if (!cursor.ReadString(&text)) return PastEnd(key, absl::StrCat("string ", i), cursor);
  }
  array.bytes = cursor.Since(start);
  return absl::OkStatus();
}

absl::Status ParseArray(std::string_view key, Value& array, Cursor& cursor) {
  uint32_t element_type = 0;
  if (!cursor.Read(&element_type) || !cursor.Read(&array.count)) {
    return PastEnd(key, "an array's type and length", cursor);
  }
  array.element_type = static_cast<ValueType>(element_type);
  if (array.element_type == ValueType::kString) return ParseStringElements(key, array, cursor);
  if (array.element_type == ValueType::kArray) {
    return absl::InvalidArgumentError(
        absl::StrCat("key ", Quoted(key), ": arrays of arrays are not supported"));
  }
  const size_t element_bytes = FixedSize(array.element_type);
  if (element_bytes == 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("key ", Quoted(key), ": unknown array element type ", element_type));
  }
  if (!cursor.ReadBytes(CheckedSize(array.count) * element_bytes, &array.bytes)) {
    return PastEnd(key, absl::StrCat("an array of ", array.count, " values"), cursor);
  }
  return absl::OkStatus();
}

absl::StatusOr<Value> ParseValue(std::string_view key, Cursor& cursor) {
  uint32_t type = 0;
  if (!cursor.Read(&type)) return PastEnd(key, "a value's type", cursor);
  Value value;
  value.type = static_cast<ValueType>(type);
  if (value.type == ValueType::kArray) {
    TANDEM_RETURN_IF_ERROR(ParseArray(key, value, cursor));
    return value;
  }
  if (value.type == ValueType::kString) {
    std::string_view text;
    if (!cursor.ReadString(&text)) return PastEnd(key, "a string", cursor);
    value.bytes = std::as_bytes(std::span(text));
    return value;
  }
  if (FixedSize(value.type) == 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("key ", Quoted(key), ": unknown value type ", type));
  }
  if (!cursor.ReadBytes(FixedSize(value.type), &value.bytes))
    return PastEnd(key, "a value", cursor);
  return value;
}

}  // namespace

absl::StatusOr<Metadata> ParseMetadata(uint64_t count, Cursor& cursor) {
  if (!(CheckedSize(count) * kMinPairBytes).FitsIn(cursor.remaining())) {
    return absl::InvalidArgumentError(absl::StrCat("the header states ", count,
                                                   " keys, more than the ", cursor.remaining(),
                                                   " bytes left in the file can hold"));
  }
  std::vector<Entry> entries;  // grows with the data read, not with the stated count
  for (uint64_t i = 0; i < count; ++i) {
    std::string_view key;
    if (!cursor.ReadString(&key)) {
      return absl::InvalidArgumentError(
          absl::StrCat("key ", i, " of ", count, " at byte ", cursor.position(),
                       " does not fit the ", cursor.remaining(), " bytes left in the file"));
    }
    TANDEM_ASSIGN_OR_RETURN(Value value, ParseValue(key, cursor));
    entries.push_back({key, value});
  }
  return Metadata::Create(std::move(entries));
}

}  // namespace tandem::gguf
