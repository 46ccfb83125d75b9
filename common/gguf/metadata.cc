#include "common/gguf/metadata.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <numeric>
#include <type_traits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/status.h"
#include "common/base/strings.h"
#include "common/gguf/quote.h"

namespace tandem::gguf {
namespace {

template <typename T>
T Load(const Value& value) {
  T number;
  std::memcpy(&number, value.bytes.data(), sizeof(number));
  return number;
}

absl::Status WrongType(std::string_view key, std::string_view needed, const Value& found) {
  return absl::InvalidArgumentError(
      absl::StrCat("key ", Quoted(key), ": needed ", Sv(needed), ", found ", found.TypeName()));
}

absl::StatusOr<const Value*> Require(const Metadata& metadata, std::string_view key) {
  const Value* value = metadata.Find(key);
  if (value == nullptr)
    return absl::NotFoundError(absl::StrCat("key ", Quoted(key), " is missing"));
  return value;
}

template <typename T>
absl::StatusOr<uint64_t> CheckSign(std::string_view key, T number) {
  if constexpr (std::is_signed_v<T>) {
    if (number < 0) {
      return absl::InvalidArgumentError(absl::StrCat("key ", Quoted(key),
                                                     ": needed a number of at least 0, found ",
                                                     static_cast<int64_t>(number)));
    }
  }
  return static_cast<uint64_t>(number);
}

absl::StatusOr<uint64_t> Unsigned(std::string_view key, const Value& value) {
  switch (value.type) {
    case ValueType::kUint8:
      return CheckSign(key, Load<uint8_t>(value));
    case ValueType::kInt8:
      return CheckSign(key, Load<int8_t>(value));
    case ValueType::kUint16:
      return CheckSign(key, Load<uint16_t>(value));
    case ValueType::kInt16:
      return CheckSign(key, Load<int16_t>(value));
    case ValueType::kUint32:
      return CheckSign(key, Load<uint32_t>(value));
    case ValueType::kInt32:
      return CheckSign(key, Load<int32_t>(value));
    case ValueType::kUint64:
      return CheckSign(key, Load<uint64_t>(value));
    case ValueType::kInt64:
      return CheckSign(key, Load<int64_t>(value));
    default:
      return WrongType(key, "an integer", value);
  }
}

absl::StatusOr<uint32_t> Unsigned32(std::string_view key, const Value& value) {
  TANDEM_ASSIGN_OR_RETURN(const uint64_t number, Unsigned(key, value));
  if (number > std::numeric_limits<uint32_t>::max()) {
    return absl::InvalidArgumentError(
        absl::StrCat("key ", Quoted(key), ": needed a number below 2^32, found ", number));
  }
  return static_cast<uint32_t>(number);
}

absl::StatusOr<bool> Flag(std::string_view key, const Value& value) {
  if (value.type != ValueType::kBool) return WrongType(key, "a bool", value);
  const auto byte = Load<uint8_t>(value);
  if (byte > 1) {
    return absl::InvalidArgumentError(
        absl::StrCat("key ", Quoted(key), ": needed a bool of 0 or 1, found ", byte));
  }
  return byte == 1;
}

// Element `index` of an array of numbers or bools.
Value ElementOf(const Value& array, uint64_t index) {
  const size_t size = FixedSize(array.element_type);
  Value element;
  element.type = array.element_type;
  element.bytes = array.bytes.subspan(index * size, size);
  return element;
}

// The elements of an array whose type FixedSize knows, each read by get(key, value).
template <typename T>
absl::StatusOr<std::vector<T>> Elements(std::string_view key, const Value& array,
                                        absl::StatusOr<T> (*get)(std::string_view, const Value&)) {
  std::vector<T> elements;
  elements.reserve(array.count);
  for (uint64_t i = 0; i < array.count; ++i) {
    TANDEM_ASSIGN_OR_RETURN(const T element, get(key, ElementOf(array, i)));
    elements.push_back(element);
  }
  return elements;
}

bool IsArrayOf(const Value& value, ValueType element_type) {
  return value.type == ValueType::kArray && value.element_type == element_type;
}

// Turns a getter into one that returns nothing if the key is missing.
template <typename T>
absl::StatusOr<std::optional<T>> Optional(const Metadata& metadata, std::string_view key,
                                          absl::StatusOr<T> (Metadata::*get)(std::string_view)
                                              const) {
  if (!metadata.Has(key)) return std::optional<T>();
  TANDEM_ASSIGN_OR_RETURN(T value, (metadata.*get)(key));
  return std::optional<T>(value);
}

}  // namespace

absl::StatusOr<Metadata> Metadata::Create(std::vector<Entry> entries) {
  Metadata metadata;
  metadata.entries_ = std::move(entries);
  const std::vector<Entry>& all = metadata.entries_;
  std::vector<uint32_t>& order = metadata.by_key_;
  order.resize(all.size());
  std::iota(order.begin(), order.end(), 0u);
  std::sort(order.begin(), order.end(),
            [&](uint32_t a, uint32_t b) { return all[a].key < all[b].key; });
  for (size_t i = 1; i < order.size(); ++i) {
    if (all[order[i - 1]].key == all[order[i]].key) {
      return absl::InvalidArgumentError(
          absl::StrCat("key ", Quoted(all[order[i]].key), " occurs twice in the file"));
    }
  }
  return metadata;
}

const Value* Metadata::Find(std::string_view key) const {
  const auto at =
      std::lower_bound(by_key_.begin(), by_key_.end(), key,
                       [&](uint32_t i, std::string_view k) { return entries_[i].key < k; });
  if (at == by_key_.end() || entries_[*at].key != key) return nullptr;
  return &entries_[*at].value;
}

absl::StatusOr<uint64_t> Metadata::GetUint64(std::string_view key) const {
  TANDEM_ASSIGN_OR_RETURN(const Value* value, Require(*this, key));
  return Unsigned(key, *value);
}

absl::StatusOr<uint32_t> Metadata::GetUint32(std::string_view key) const {
  TANDEM_ASSIGN_OR_RETURN(const Value* value, Require(*this, key));
  return Unsigned32(key, *value);
}

absl::StatusOr<float> Metadata::GetFloat(std::string_view key) const {
  TANDEM_ASSIGN_OR_RETURN(const Value* value, Require(*this, key));
  if (value->type == ValueType::kFloat32) return Load<float>(*value);
  if (value->type == ValueType::kFloat64) return static_cast<float>(Load<double>(*value));
  return WrongType(key, "a float", *value);
}

absl::StatusOr<bool> Metadata::GetBool(std::string_view key) const {
  TANDEM_ASSIGN_OR_RETURN(const Value* value, Require(*this, key));
  return Flag(key, *value);
}

absl::StatusOr<std::string_view> Metadata::GetString(std::string_view key) const {
  TANDEM_ASSIGN_OR_RETURN(const Value* value, Require(*this, key));
  if (value->type != ValueType::kString) return WrongType(key, "a string", *value);
  return std::string_view(reinterpret_cast<const char*>(value->bytes.data()), value->bytes.size());
}

absl::StatusOr<StringArray> Metadata::GetStrings(std::string_view key) const {
  TANDEM_ASSIGN_OR_RETURN(const Value* value, Require(*this, key));
  if (!IsArrayOf(*value, ValueType::kString)) return WrongType(key, "an array of string", *value);
  return StringArray(value->bytes, value->count);
}

absl::StatusOr<NumberArray<float>> Metadata::GetFloats(std::string_view key) const {
  TANDEM_ASSIGN_OR_RETURN(const Value* value, Require(*this, key));
  if (!IsArrayOf(*value, ValueType::kFloat32)) return WrongType(key, "an array of float32", *value);
  return NumberArray<float>(value->bytes.data(), value->count);
}

absl::StatusOr<NumberArray<int32_t>> Metadata::GetInt32s(std::string_view key) const {
  TANDEM_ASSIGN_OR_RETURN(const Value* value, Require(*this, key));
  if (!IsArrayOf(*value, ValueType::kInt32) && !IsArrayOf(*value, ValueType::kUint32)) {
    return WrongType(key, "an array of int32", *value);
  }
  return NumberArray<int32_t>(value->bytes.data(), value->count);
}

absl::StatusOr<std::vector<uint32_t>> Metadata::GetUint32List(std::string_view key) const {
  TANDEM_ASSIGN_OR_RETURN(const Value* value, Require(*this, key));
  if (value->type != ValueType::kArray) {
    TANDEM_ASSIGN_OR_RETURN(const uint32_t number, Unsigned32(key, *value));
    return std::vector<uint32_t>{number};
  }
  if (FixedSize(value->element_type) == 0) return WrongType(key, "an array of integers", *value);
  return Elements<uint32_t>(key, *value, &Unsigned32);
}

absl::StatusOr<std::vector<bool>> Metadata::GetBools(std::string_view key) const {
  TANDEM_ASSIGN_OR_RETURN(const Value* value, Require(*this, key));
  if (!IsArrayOf(*value, ValueType::kBool)) return WrongType(key, "an array of bool", *value);
  return Elements<bool>(key, *value, &Flag);
}

absl::StatusOr<std::optional<uint32_t>> Metadata::FindUint32(std::string_view key) const {
  return Optional(*this, key, &Metadata::GetUint32);
}
absl::StatusOr<std::optional<float>> Metadata::FindFloat(std::string_view key) const {
  return Optional(*this, key, &Metadata::GetFloat);
}
absl::StatusOr<std::optional<bool>> Metadata::FindBool(std::string_view key) const {
  return Optional(*this, key, &Metadata::GetBool);
}
absl::StatusOr<std::optional<std::string_view>> Metadata::FindString(std::string_view key) const {
  return Optional(*this, key, &Metadata::GetString);
}

}  // namespace tandem::gguf
