// Reads a file's bytes front to back and never past their end.
#ifndef TANDEM_COMMON_GGUF_CURSOR_H_
#define TANDEM_COMMON_GGUF_CURSOR_H_

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string_view>

#include "common/base/checked_size.h"

namespace tandem::gguf {

static_assert(std::endian::native == std::endian::little, "GGUF is read in place");

// A read that does not fit returns false and does not advance. Not thread-safe.
class Cursor {
 public:
  explicit Cursor(std::span<const std::byte> bytes) : bytes_(bytes) {}

  size_t position() const { return position_; }
  size_t remaining() const { return bytes_.size() - position_; }

  template <typename T>
  [[nodiscard]] bool Read(T* value) {
    if (remaining() < sizeof(T)) return false;
    std::memcpy(value, bytes_.data() + position_, sizeof(T));
    position_ += sizeof(T);
    return true;
  }

  [[nodiscard]] bool ReadBytes(CheckedSize size, std::span<const std::byte>* bytes) {
    if (!size.FitsIn(remaining())) return false;
    *bytes = bytes_.subspan(position_, *size.value());
    position_ += bytes->size();
    return true;
  }

  // A 64-bit length and that many characters.
  [[nodiscard]] bool ReadString(std::string_view* text) {
    const size_t start = position_;
    uint64_t length = 0;
    std::span<const std::byte> bytes;
    if (!Read(&length) || !ReadBytes(length, &bytes)) {
      position_ = start;
      return false;
    }
    *text = {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
    return true;
  }

  // The bytes between an earlier position and this one.
  std::span<const std::byte> Since(size_t start) const {
    return bytes_.subspan(start, position_ - start);
  }

 private:
  std::span<const std::byte> bytes_;
  size_t position_ = 0;
};

}  // namespace tandem::gguf

#endif  // TANDEM_COMMON_GGUF_CURSOR_H_
