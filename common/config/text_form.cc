#include "common/config/text_form.h"

#include <charconv>
#include <system_error>

#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "absl/time/time.h"
#include "common/base/strings.h"

namespace tandem::config {
namespace {

struct Unit {
  const char* name;
  uint64_t bytes;
};
// Binary units first: an amount is written in the largest that divides it.
constexpr Unit kUnits[] = {
    {"TiB", 1ull << 40},       {"GiB", 1ull << 30},   {"MiB", 1ull << 20}, {"KiB", 1ull << 10},
    {"TB", 1'000'000'000'000}, {"GB", 1'000'000'000}, {"MB", 1'000'000},   {"KB", 1'000}};
constexpr size_t kBinaryUnits = 4;
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
  for (size_t i = 0; i < kBinaryUnits; ++i) {
    if (value.bytes % kUnits[i].bytes == 0) {
      return absl::StrCat(value.bytes / kUnits[i].bytes, kUnits[i].name);
    }
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
  absl::string_view number = Sv(text);
  uint64_t unit = 1;
  for (const Unit& one : kUnits) {
    if (!absl::ConsumeSuffix(&number, one.name)) continue;
    unit = one.bytes;
    break;
  }
  uint64_t amount = 0;
  return ParseNumber(StdSv(number), amount) && amount != 0 &&
         !__builtin_mul_overflow(amount, unit, &value.bytes);
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
