// Writes GGUF files for tests, right ones and, on request, wrong ones.
#ifndef TANDEM_TESTS_COMMON_GGUF_GGUF_BUILDER_H_
#define TANDEM_TESTS_COMMON_GGUF_GGUF_BUILDER_H_

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

#include "common/gguf/value.h"
#include "common/tensor/type.h"

namespace tandem::gguf {

// Appends numbers and strings as GGUF writes them.
class ByteWriter {
 public:
  template <typename T>
  ByteWriter& Number(T value) {
    // Not insert(): where it is inlined, gcc 12 warns of an overflow that is not there.
    const size_t at = bytes_.size();
    bytes_.resize(at + sizeof(T));
    std::memcpy(bytes_.data() + at, &value, sizeof(T));
    return *this;
  }
  ByteWriter& Text(std::string_view text) {
    Number(static_cast<uint64_t>(text.size()));
    return Raw(std::as_bytes(std::span(text)));
  }
  ByteWriter& Raw(std::span<const std::byte> raw) {
    bytes_.insert(bytes_.end(), raw.begin(), raw.end());
    return *this;
  }
  std::vector<std::byte>& bytes() { return bytes_; }

 private:
  std::vector<std::byte> bytes_;
};

// Values and directory rows in the order they are added. Public fields override what the header
// would say.
class GgufBuilder {
 public:
  template <typename T>
  GgufBuilder& Add(std::string_view key, ValueType type, T value) {
    return AddRaw(key, type, ByteWriter().Number(value).bytes());
  }
  GgufBuilder& AddUint32(std::string_view key, uint32_t value) {
    return Add(key, ValueType::kUint32, value);
  }
  GgufBuilder& AddFloat(std::string_view key, float value) {
    return Add(key, ValueType::kFloat32, value);
  }
  GgufBuilder& AddString(std::string_view key, std::string_view value) {
    return AddRaw(key, ValueType::kString, ByteWriter().Text(value).bytes());
  }
  GgufBuilder& AddStrings(std::string_view key, const std::vector<std::string>& values) {
    ByteWriter writer;
    writer.Number(ValueType::kString).Number(static_cast<uint64_t>(values.size()));
    for (const std::string& value : values) writer.Text(value);
    return AddRaw(key, ValueType::kArray, writer.bytes());
  }
  // Any bytes as a value.
  template <typename T>
  GgufBuilder& AddArray(std::string_view key, ValueType element_type,
                        const std::vector<T>& elements) {
    std::vector<std::byte> bytes(12 + elements.size() * sizeof(T));
    const auto type = static_cast<uint32_t>(element_type);
    const uint64_t count = elements.size();
    std::memcpy(bytes.data(), &type, sizeof(type));
    std::memcpy(bytes.data() + 4, &count, sizeof(count));
    if (!elements.empty()) {
      std::memcpy(bytes.data() + 12, elements.data(), elements.size() * sizeof(T));
    }
    return AddRaw(key, ValueType::kArray, bytes);
  }
  GgufBuilder& AddRaw(std::string_view key, ValueType type, std::span<const std::byte> value) {
    pairs_.Text(key).Number(type).Raw(value);
    ++num_keys;
    return *this;
  }
  // A value of a file that was read.
  GgufBuilder& AddValue(std::string_view key, const Value& value) {
    ByteWriter writer;
    if (value.type == ValueType::kString) writer.Number(uint64_t{value.bytes.size()});
    if (value.type == ValueType::kArray) writer.Number(value.element_type).Number(value.count);
    return AddRaw(key, value.type, writer.Raw(value.bytes).bytes());
  }

  // A tensor whose bytes follow the last one's, padded to the alignment.
  GgufBuilder& AddTensor(std::string_view name, const std::vector<uint64_t>& dims,
                         tensor::Type type, std::span<const std::byte> data) {
    Pad(data_.bytes());
    AddRow(name, dims, static_cast<uint32_t>(type), data_.bytes().size());
    data_.Raw(data);
    return *this;
  }
  // Only a directory row.
  GgufBuilder& AddRow(std::string_view name, const std::vector<uint64_t>& dims, uint32_t type,
                      uint64_t offset) {
    directory_.Text(name).Number(static_cast<uint32_t>(dims.size()));
    for (const uint64_t dim : dims) directory_.Number(dim);
    directory_.Number(type).Number(offset);
    ++num_tensors;
    return *this;
  }
  // Bytes of data that no row speaks of yet.
  GgufBuilder& AddData(size_t size) {
    data_.bytes().resize(data_.bytes().size() + size);
    return *this;
  }

  std::vector<std::byte> Build() {
    ByteWriter file;
    file.Raw(std::as_bytes(std::span("GGUF", 4)));
    file.Number(version).Number(num_tensors).Number(num_keys);
    file.Raw(pairs_.bytes()).Raw(directory_.bytes());
    if (!data_.bytes().empty()) {
      Pad(file.bytes());
      file.Raw(data_.bytes());
    }
    return file.bytes();
  }

  uint32_t version = 3;
  uint64_t num_tensors = 0;
  uint64_t num_keys = 0;
  size_t alignment = 32;

 private:
  void Pad(std::vector<std::byte>& bytes) const {
    bytes.resize((bytes.size() + alignment - 1) / alignment * alignment);
  }

  ByteWriter pairs_;
  ByteWriter directory_;
  ByteWriter data_;
};

}  // namespace tandem::gguf

#endif  // TANDEM_TESTS_COMMON_GGUF_GGUF_BUILDER_H_
