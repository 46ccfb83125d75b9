// SseParser: the data of server-sent events from a byte stream in pieces of any size.
#ifndef TANDEM_TESTS_LOAD_SSE_PARSER_H_
#define TANDEM_TESTS_LOAD_SSE_PARSER_H_

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"

namespace tandem::load {

class SseParser {
 public:
  // An event may be this long.
  static constexpr size_t kMaxEventBytes = 1 << 24;

  // The data of the events that `bytes` complete; several data lines are joined by newlines, other
  // fields and comments are skipped. RESOURCE_EXHAUSTED for an event that is too long.
  absl::StatusOr<std::vector<std::string>> Parse(std::string_view bytes);

 private:
  void EndLine(std::vector<std::string>& events);

  std::string line_;
  std::string data_;
  bool has_data_ = false;
};

}  // namespace tandem::load

#endif  // TANDEM_TESTS_LOAD_SSE_PARSER_H_
