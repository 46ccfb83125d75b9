#include "common/base/utf8.h"

#include <cstring>

namespace tandem {
namespace {

constexpr std::string_view kReplacement = "\uFFFD";

// Valid continuations of a first byte (Unicode 15, table 3-7). `length` 0: not the start of a
// character.
struct Lead {
  uint8_t length;
  uint8_t second_min;
  uint8_t second_max;
};

Lead Classify(uint8_t first) {
  if (first < 0x80) return {1, 0, 0};
  if (first < 0xc2) return {0, 0, 0};
  if (first < 0xe0) return {2, 0x80, 0xbf};
  if (first == 0xe0) return {3, 0xa0, 0xbf};
  if (first == 0xed) return {3, 0x80, 0x9f};
  if (first < 0xf0) return {3, 0x80, 0xbf};
  if (first == 0xf0) return {4, 0x90, 0xbf};
  if (first < 0xf4) return {4, 0x80, 0xbf};
  if (first == 0xf4) return {4, 0x80, 0x8f};
  return {0, 0, 0};
}

}  // namespace

void Utf8Stream::Append(std::string_view bytes, std::string* out) {
  for (char c : bytes) {
    const uint8_t byte = static_cast<uint8_t>(c);
    if (waiting_bytes_ > 0) {
      if (Continue(byte, out)) continue;
      Flush(out);
    }
    Start(byte, out);
  }
}

bool Utf8Stream::Continue(uint8_t byte, std::string* out) {
  if (byte < next_min_ || byte > next_max_) return false;
  waiting_[waiting_bytes_++] = static_cast<char>(byte);
  next_min_ = 0x80;
  next_max_ = 0xbf;
  if (waiting_bytes_ == needed_bytes_) {
    out->append(waiting_, waiting_bytes_);
    waiting_bytes_ = 0;
  }
  return true;
}

void Utf8Stream::Start(uint8_t byte, std::string* out) {
  const Lead lead = Classify(byte);
  if (lead.length == 0) {
    out->append(kReplacement);
    return;
  }
  if (lead.length == 1) {
    out->push_back(static_cast<char>(byte));
    return;
  }
  waiting_[0] = static_cast<char>(byte);
  waiting_bytes_ = 1;
  needed_bytes_ = lead.length;
  next_min_ = lead.second_min;
  next_max_ = lead.second_max;
}

void Utf8Stream::Flush(std::string* out) {
  if (waiting_bytes_ > 0) out->append(kReplacement);
  waiting_bytes_ = 0;
}

std::string RepairedUtf8(std::string_view bytes) {
  Utf8Stream stream;
  std::string text;
  stream.Append(bytes, &text);
  stream.Flush(&text);
  return text;
}

size_t ValidUtf8Prefix(std::string_view text) {
  size_t at = 0;
  while (at < text.size()) {
    uint64_t eight;
    if (at + 8 <= text.size()) {
      std::memcpy(&eight, text.data() + at, 8);
      if ((eight & 0x8080808080808080u) == 0) {
        at += 8;
        continue;
      }
    }
    const Lead lead = Classify(static_cast<uint8_t>(text[at]));
    if (lead.length == 0 || text.size() - at < lead.length) return at;
    for (size_t i = 1; i < lead.length; ++i) {
      const uint8_t byte = static_cast<uint8_t>(text[at + i]);
      const uint8_t min = i == 1 ? lead.second_min : 0x80;
      const uint8_t max = i == 1 ? lead.second_max : 0xbf;
      if (byte < min || byte > max) return at;
    }
    at += lead.length;
  }
  return at;
}

}  // namespace tandem
