// Metadata values of a GGUF file as typed views into its bytes: nothing is copied.
//
// Format: https://github.com/ggml-org/ggml/blob/master/docs/gguf.md. Views are valid as long as the
// file's bytes.
#ifndef TANDEM_COMMON_GGUF_VALUE_H_
#define TANDEM_COMMON_GGUF_VALUE_H_

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace tandem::gguf {

// Numbers as files store them.
enum class ValueType : uint32_t {
  kUint8 = 0,
  kInt8 = 1,
  kUint16 = 2,
  kInt16 = 3,
  kUint32 = 4,
  kInt32 = 5,
  kFloat32 = 6,
  kBool = 7,
  kString = 8,
  kArray = 9,
  kUint64 = 10,
  kInt64 = 11,
  kFloat64 = 12,
};

// "uint32", "string", ...; "unknown" for a number that is not a type.
std::string_view Name(ValueType type);
// Bytes of one value; 0 for strings, arrays and unknown numbers.
size_t FixedSize(ValueType type);

// One value: a scalar's bytes, a string's characters, or an array's elements, all already
// bounds-checked.
struct Value {
  ValueType type{};
  std::span<const std::byte> bytes;
  ValueType element_type{};  // of an array
  uint64_t count = 0;        // elements of an array

  // The name of the type: "uint32", "array of string".
  std::string TypeName() const;
};

// The strings of an array value, in order. The bytes were checked when the file was read, so
// iteration cannot fail.
class StringArray {
 public:
  // REQUIRES: `bytes` holds `count` checked length-prefixed strings.
  StringArray(std::span<const std::byte> bytes, uint64_t count) : bytes_(bytes), count_(count) {}
  StringArray() = default;

  // Forward only: strings are contiguous, each after its 64-bit length.
  class Iterator {
   public:
    using iterator_category = std::input_iterator_tag;
    using value_type = std::string_view;
    using difference_type = ptrdiff_t;
    using pointer = const std::string_view*;
    using reference = std::string_view;

    explicit Iterator(const std::byte* at) : at_(at) {}
    std::string_view operator*() const {
      return {reinterpret_cast<const char*>(at_ + sizeof(uint64_t)), Length()};
    }
    Iterator& operator++() {
      at_ += sizeof(uint64_t) + Length();
      return *this;
    }
    bool operator==(const Iterator&) const = default;

   private:
    size_t Length() const {
      uint64_t length;
      std::memcpy(&length, at_, sizeof(length));
      return length;
    }
    const std::byte* at_;
  };

  Iterator begin() const { return Iterator(bytes_.data()); }
  Iterator end() const { return Iterator(bytes_.data() + bytes_.size()); }
  size_t size() const { return count_; }
  bool empty() const { return count_ == 0; }
  // For random access: 16 bytes per string, pointing into the file.
  std::vector<std::string_view> ToVector() const { return {begin(), end()}; }

 private:
  std::span<const std::byte> bytes_;
  uint64_t count_ = 0;
};

// The numbers of an array value. Elements may be unaligned in the file, so they are read one by
// one.
template <typename T>
class NumberArray {
 public:
  NumberArray(const std::byte* data, uint64_t count) : data_(data), count_(count) {}
  NumberArray() = default;

  size_t size() const { return count_; }
  bool empty() const { return count_ == 0; }
  // REQUIRES: i < size().
  T operator[](size_t i) const {
    T value;
    std::memcpy(&value, data_ + i * sizeof(T), sizeof(T));
    return value;
  }
  std::vector<T> ToVector() const {
    std::vector<T> all(count_);
    if (count_ != 0) std::memcpy(all.data(), data_, count_ * sizeof(T));
    return all;
  }

 private:
  const std::byte* data_ = nullptr;
  uint64_t count_ = 0;
};

}  // namespace tandem::gguf

#endif  // TANDEM_COMMON_GGUF_VALUE_H_
