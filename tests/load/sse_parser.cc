#include "tests/load/sse_parser.h"

#include <utility>

#include "absl/strings/str_cat.h"

namespace tandem::load {

void SseParser::EndLine(std::vector<std::string>& events) {
  constexpr std::string_view kData = "data:";
  if (!line_.empty() && line_.back() == '\r') line_.pop_back();
  if (line_.empty()) {
    if (has_data_) events.push_back(std::exchange(data_, {}));
    has_data_ = false;
  } else if (line_.starts_with(kData)) {
    std::string_view value = std::string_view(line_).substr(kData.size());
    if (value.starts_with(' ')) value.remove_prefix(1);
    if (has_data_) data_ += '\n';
    data_ += value;
    has_data_ = true;
  }
  line_.clear();
}

absl::StatusOr<std::vector<std::string>> SseParser::Parse(std::string_view bytes) {
  std::vector<std::string> events;
  while (!bytes.empty()) {
    const size_t end = bytes.find('\n');
    line_ += bytes.substr(0, end);
    if (line_.size() + data_.size() > kMaxEventBytes) {
      return absl::ResourceExhaustedError(
          absl::StrCat("an event of the server has more than ", kMaxEventBytes, " bytes"));
    }
    if (end == std::string_view::npos) break;
    bytes.remove_prefix(end + 1);
    EndLine(events);
  }
  return events;
}

}  // namespace tandem::load
