#include "common/config/text_form.h"

#include <algorithm>
#include <charconv>
#include <system_error>
#include <utility>

#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "common/base/strings.h"
#include "common/base/utf8.h"

namespace tandem::config {
namespace {

constexpr absl::string_view kPrefixes = "KMGTPE";

// The bytes of a unit, in any case: "K" and "KB" are 1000, "Ki" and "KiB" 1024, and so on up to
// exbibytes; 0 for what is no unit.
uint64_t UnitBytes(absl::string_view unit) {
  if (unit.empty() || absl::EqualsIgnoreCase(unit, "B")) return 1;
  for (const auto& [ending, base] : {std::pair("", 1000), {"B", 1000}, {"i", 1024}, {"iB", 1024}}) {
    uint64_t bytes = 1;
    for (size_t i = 0; i < kPrefixes.size(); ++i) {
      bytes *= base;
      if (absl::EqualsIgnoreCase(unit, absl::StrCat(kPrefixes.substr(i, 1), ending))) return bytes;
    }
  }
  return 0;
}

constexpr char kAuto[] = "auto";

// The shortest text that parses to the same number.
template <typename T>
std::string NumberText(T value) {
  char text[64];
  const auto [end, error] = std::to_chars(text, text + sizeof(text), value);
  return error == std::errc() ? std::string(text, end) : std::string();
}

template <typename T>
bool ParseNumber(std::string_view text, T& value) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc() && end == text.data() + text.size() && !text.empty();
}

}  // namespace

std::string ToText(bool value) { return value ? "true" : "false"; }
std::string ToText(int32_t value) { return NumberText(value); }
std::string ToText(uint32_t value) { return NumberText(value); }
std::string ToText(uint64_t value) { return NumberText(value); }
std::string ToText(float value) { return NumberText(value); }
std::string ToText(double value) { return NumberText(value); }
std::string ToText(const std::string& value) { return value; }

std::string ToText(Duration value) {
  constexpr int64_t kSecond = Duration(std::chrono::seconds(1)).count();
  if (value.count() % kSecond == 0) return absl::StrCat(value.count() / kSecond, "s");
  return absl::FormatDuration(absl::FromChrono(value));
}

std::string ToText(ByteSize value) {
  if (value.is_auto()) return kAuto;
  // The largest unit that divides the amount writes it.
  for (size_t i = kPrefixes.size(); i-- > 0;) {
    const uint64_t unit = 1ull << 10 * (i + 1);
    if (value.bytes % unit != 0) continue;
    return absl::StrCat(value.bytes / unit, kPrefixes.substr(i, 1), "iB");
  }
  return NumberText(value.bytes);
}

bool FromText(std::string_view text, bool& value) {
  value = text == "true";
  return value || text == "false";
}
bool FromText(std::string_view text, int32_t& value) { return ParseNumber(text, value); }
bool FromText(std::string_view text, uint32_t& value) { return ParseNumber(text, value); }
bool FromText(std::string_view text, uint64_t& value) { return ParseNumber(text, value); }
bool FromText(std::string_view text, float& value) { return ParseNumber(text, value); }
bool FromText(std::string_view text, double& value) { return ParseNumber(text, value); }
bool FromText(std::string_view text, std::string& value) {
  value = text;
  return true;
}

bool FromText(std::string_view text, Duration& value) {
  absl::Duration duration;
  double seconds = 0;
  if (ParseNumber(text, seconds)) {
    duration = absl::Seconds(seconds);  // infinite for NaN
  } else if (!absl::ParseDuration(Sv(text), &duration)) {
    return false;
  }
  value = absl::ToChronoNanoseconds(duration);  // saturates
  return true;
}

bool FromText(std::string_view text, ByteSize& value) {
  value = {};
  if (text == kAuto) return true;
  const size_t digits = std::min(text.find_first_not_of("0123456789"), text.size());
  const uint64_t unit = UnitBytes(Sv(text.substr(digits)));
  uint64_t amount = 0;
  return ParseNumber(text.substr(0, digits), amount) && amount != 0 && unit != 0 &&
         !__builtin_mul_overflow(amount, unit, &value.bytes);
}

std::string Quoted(std::string_view text) {
  constexpr size_t kLimit = 60;
  std::string_view shown = text.substr(0, kLimit);
  shown = shown.substr(0, ValidUtf8Prefix(shown));
  return absl::StrCat("'", absl::Utf8SafeCEscape(Sv(shown)), shown == text ? "'" : "...'");
}

std::vector<std::string_view> SplitList(std::string_view text) {
  std::vector<std::string_view> parts;
  while (true) {
    const size_t comma = text.find(',');
    parts.push_back(text.substr(0, comma));
    if (comma == std::string_view::npos) return parts;
    text.remove_prefix(comma + 1);
  }
}

}  // namespace tandem::config
