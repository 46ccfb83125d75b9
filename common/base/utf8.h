// UTF-8: validation of input, and repair of output.
#ifndef TANDEM_COMMON_BASE_UTF8_H_
#define TANDEM_COMMON_BASE_UTF8_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace tandem {

// A byte stream turned into valid UTF-8, piece by piece. Bytes that can no longer become a
// character come out as U+FFFD, one for each longest start of a character (Unicode 15, 3.9,
// "maximal subparts"); a start that may still be completed is held back. A value; not thread-safe.
class Utf8Stream {
 public:
  // Appends the final characters of `bytes` to `out`.
  void Append(std::string_view bytes, std::string* out);
  // Ends the stream: an unfinished character becomes one U+FFFD.
  void Flush(std::string* out);

 private:
  // Takes one byte; false if it cannot follow the pending bytes.
  bool Continue(uint8_t byte, std::string* out);
  void Start(uint8_t byte, std::string* out);

  char waiting_[4];
  uint8_t waiting_bytes_ = 0;
  uint8_t needed_bytes_ = 0;  // of the whole character
  uint8_t next_min_ = 0;      // bounds of the next byte
  uint8_t next_max_ = 0;
};

// `bytes` as a whole, repaired as by Utf8Stream.
std::string RepairedUtf8(std::string_view bytes);

// Where `text` stops being valid UTF-8; text.size() when all of it is valid.
size_t ValidUtf8Prefix(std::string_view text);

// The length of a character, from its first byte. REQUIRES: `first` starts a character.
inline size_t Utf8Length(uint8_t first) {
  return first < 0x80 ? 1 : first < 0xe0 ? 2 : first < 0xf0 ? 3 : 4;
}

// Appends the UTF-8 form of `code_point`, which is below 0x800.
inline void AppendUtf8Short(uint32_t code_point, std::string* out) {
  if (code_point < 0x80) {
    out->push_back(static_cast<char>(code_point));
    return;
  }
  out->push_back(static_cast<char>(0xc0 | (code_point >> 6)));
  out->push_back(static_cast<char>(0x80 | (code_point & 0x3f)));
}

}  // namespace tandem

#endif  // TANDEM_COMMON_BASE_UTF8_H_
