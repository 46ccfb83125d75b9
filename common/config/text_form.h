// The text form of a value in flags, on the wire and in documents. Exact: the text of a value
// parses back to that value.
//
// bool, integers, floating point, strings, Duration ("60s", "500ms", or seconds), ByteSize, enums
// with EnumNames, optionals of these (empty text: no value, but of strings), and lists (numbers
// separated by commas, empty text: none; of strings one per text).
#ifndef TANDEM_COMMON_CONFIG_TEXT_FORM_H_
#define TANDEM_COMMON_CONFIG_TEXT_FORM_H_

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "common/base/clock.h"
#include "common/config/byte_size.h"
#include "common/config/enum_names.h"

namespace tandem::config {

std::string ToText(bool value);
std::string ToText(int32_t value);
std::string ToText(uint32_t value);
std::string ToText(uint64_t value);
std::string ToText(float value);
std::string ToText(double value);
std::string ToText(const std::string& value);
std::string ToText(Duration value);
std::string ToText(ByteSize value);

// False if `text` is not of the type; `value` is unspecified then.
bool FromText(std::string_view text, bool& value);
bool FromText(std::string_view text, int32_t& value);
bool FromText(std::string_view text, uint32_t& value);
bool FromText(std::string_view text, uint64_t& value);
bool FromText(std::string_view text, float& value);
bool FromText(std::string_view text, double& value);
bool FromText(std::string_view text, std::string& value);
bool FromText(std::string_view text, Duration& value);
bool FromText(std::string_view text, ByteSize& value);

// Any bytes as a message shows them: in quotes, on one line of UTF-8, cut where they are long.
std::string Quoted(std::string_view text);

// The parts of `text` between commas.
std::vector<std::string_view> SplitList(std::string_view text);

template <NamedEnum E>
std::string ToText(E value) {
  return NameOf(value);
}
template <NamedEnum E>
bool FromText(std::string_view text, E& value) {
  for (const auto& [named, name] : EnumNames<E>::kNames) {
    if (text != name) continue;
    value = named;
    return true;
  }
  return false;
}

template <typename T>
std::string ToText(const std::optional<T>& value) {
  return value.has_value() ? ToText(*value) : std::string();
}
template <typename T>
bool FromText(std::string_view text, std::optional<T>& value) {
  value.reset();
  if (text.empty() && !std::is_same_v<T, std::string>) return true;
  return FromText(text, value.emplace());
}

template <typename T>
std::string ToText(const std::vector<T>& values) {
  std::string text;
  for (const T& value : values) text += (text.empty() ? "" : ",") + ToText(value);
  return text;
}
// Appends.
template <typename T>
bool FromText(std::string_view text, std::vector<T>& values) {
  if constexpr (std::is_same_v<T, std::string>) {
    values.emplace_back(text);
    return true;
  } else {
    if (text.empty()) return true;
    for (const std::string_view part : SplitList(text)) {
      T value{};
      if (!FromText(part, value)) return false;
      values.push_back(std::move(value));
    }
    return true;
  }
}

// The number compared with a range: durations in seconds, sizes in bytes.
template <typename T>
struct Measured {
  static double Of(const T& value) {
    if constexpr (std::is_arithmetic_v<T>) return static_cast<double>(value);
    return 0;
  }
  static T From(double value) {
    if constexpr (std::is_arithmetic_v<T>) return static_cast<T>(value);
    return T();
  }
};
template <>
struct Measured<Duration> {
  static double Of(Duration value) { return std::chrono::duration<double>(value).count(); }
  static Duration From(double seconds) {
    return std::chrono::duration_cast<Duration>(std::chrono::duration<double>(seconds));
  }
};
template <>
struct Measured<ByteSize> {
  static double Of(ByteSize value) { return static_cast<double>(value.bytes); }
  static ByteSize From(double bytes) { return {static_cast<uint64_t>(bytes)}; }
};

// An unset value is in every range; of a list, each element is checked.
template <typename T>
bool Within(const T& value, double least, double most) {
  return Measured<T>::Of(value) >= least && Measured<T>::Of(value) <= most;
}
template <typename T>
bool Within(const std::optional<T>& value, double least, double most) {
  return !value.has_value() || Within(*value, least, most);
}
template <typename T>
bool Within(const std::vector<T>& values, double least, double most) {
  for (const T& value : values) {
    if (!Within(value, least, most)) return false;
  }
  return true;
}

// "a whole number", for messages.
template <typename T>
constexpr const char* Expected() {
  if constexpr (std::is_same_v<T, bool>) return "true or false";
  if constexpr (std::is_integral_v<T>) return "a whole number";
  if constexpr (std::is_floating_point_v<T>) return "a number";
  if constexpr (std::is_same_v<T, Duration>) return "a time such as 60s, 500ms or 2m";
  if constexpr (std::is_same_v<T, ByteSize>) return "an amount of memory such as 512MiB or 2GiB";
  return "text";
}

}  // namespace tandem::config

#endif  // TANDEM_COMMON_CONFIG_TEXT_FORM_H_
