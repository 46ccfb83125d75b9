#include "coordinator/api/trace_context.h"

#include <algorithm>

namespace tandem::coordinator {
namespace {

// version "-" trace-id "-" parent-id "-" flags, in lower-case hexadecimal digits.
constexpr size_t kTraceBegin = 3, kTraceDigits = 32;
constexpr size_t kDashes[] = {2, 35, 52};
constexpr size_t kLength = 55;

bool IsHex(char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'); }

bool IsWellFormed(std::string_view text) {
  for (size_t i = 0; i < kLength; ++i) {
    const bool dash = std::ranges::find(kDashes, i) != std::end(kDashes);
    if (dash ? text[i] != '-' : !IsHex(text[i])) return false;
  }
  return true;
}

}  // namespace

std::string TraceId(std::string_view traceparent) {
  // Later versions may append fields.
  if (traceparent.size() < kLength) return "";
  if (traceparent.size() > kLength && traceparent[kLength] != '-') return "";
  if (!IsWellFormed(traceparent)) return "";
  const std::string_view version = traceparent.substr(0, 2);
  if (version == "ff" || (version == "00" && traceparent.size() > kLength)) return "";
  const std::string_view trace = traceparent.substr(kTraceBegin, kTraceDigits);
  if (trace.find_first_not_of('0') == std::string_view::npos) return "";
  return std::string(trace);
}

}  // namespace tandem::coordinator
