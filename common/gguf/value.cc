#include "common/gguf/value.h"

#include "absl/strings/str_cat.h"
#include "common/base/strings.h"

namespace tandem::gguf {
namespace {

struct TypeRow {
  ValueType type;
  std::string_view name;
  size_t size;
};

constexpr TypeRow kTypes[] = {
    {ValueType::kUint8, "uint8", 1},     {ValueType::kInt8, "int8", 1},
    {ValueType::kUint16, "uint16", 2},   {ValueType::kInt16, "int16", 2},
    {ValueType::kUint32, "uint32", 4},   {ValueType::kInt32, "int32", 4},
    {ValueType::kFloat32, "float32", 4}, {ValueType::kBool, "bool", 1},
    {ValueType::kString, "string", 0},   {ValueType::kArray, "array", 0},
    {ValueType::kUint64, "uint64", 8},   {ValueType::kInt64, "int64", 8},
    {ValueType::kFloat64, "float64", 8},
};

}  // namespace

std::string_view Name(ValueType type) {
  for (const TypeRow& row : kTypes) {
    if (row.type == type) return row.name;
  }
  return "unknown";
}

size_t FixedSize(ValueType type) {
  for (const TypeRow& row : kTypes) {
    if (row.type == type) return row.size;
  }
  return 0;
}

std::string Value::TypeName() const {
  if (type != ValueType::kArray) return std::string(Name(type));
  return absl::StrCat("array of ", Sv(Name(element_type)));
}

}  // namespace tandem::gguf
