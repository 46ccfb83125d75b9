#include "common/transport/string_list.h"

namespace tandem::transport {

Frame PackStrings(const std::vector<std::string>& strings) {
  Frame frame;
  for (const std::string& text : strings) {
    const auto length = static_cast<uint32_t>(text.size());
    for (int shift = 0; shift < 32; shift += 8) {
      frame.push_back(static_cast<uint8_t>(length >> shift));
    }
    frame.insert(frame.end(), text.begin(), text.end());
  }
  return frame;
}

std::optional<std::vector<std::string>> UnpackStrings(std::span<const uint8_t> frame) {
  std::vector<std::string> strings;
  while (!frame.empty()) {
    if (frame.size() < 4) return std::nullopt;
    const uint32_t length = frame[0] | frame[1] << 8 | frame[2] << 16 | uint32_t{frame[3]} << 24;
    frame = frame.subspan(4);
    if (length > frame.size()) return std::nullopt;
    strings.emplace_back(frame.begin(), frame.begin() + length);
    frame = frame.subspan(length);
  }
  return strings;
}

}  // namespace tandem::transport
