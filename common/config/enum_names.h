// The names of enum values in flags, messages and documents, defined once by a specialization:
//
//   template <>
//   struct EnumNames<Device> {
//     static constexpr std::pair<Device, const char*> kNames[] = {{Device::kCpu, "cpu"}, ...};
//   };
#ifndef TANDEM_COMMON_CONFIG_ENUM_NAMES_H_
#define TANDEM_COMMON_CONFIG_ENUM_NAMES_H_

#include <utility>

namespace tandem::config {

template <typename E>
struct EnumNames;

template <typename E>
concept NamedEnum = requires {
  EnumNames<E>::kNames;
};

// "?" for a value without a name.
template <NamedEnum E>
constexpr const char* NameOf(E value) {
  for (const auto& [named, name] : EnumNames<E>::kNames) {
    if (named == value) return name;
  }
  return "?";
}

}  // namespace tandem::config

#endif  // TANDEM_COMMON_CONFIG_ENUM_NAMES_H_
