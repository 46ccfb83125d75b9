// LoraModule: a LoRA adapter and the name by which requests ask for it.
#ifndef TANDEM_COMMON_CONFIG_LORA_MODULE_H_
#define TANDEM_COMMON_CONFIG_LORA_MODULE_H_

#include <cstddef>
#include <string>
#include <string_view>

#include "common/config/text_form.h"

namespace tandem::config {

inline constexpr size_t kMaxLoraModules = 64;
inline constexpr size_t kMaxLoraNameBytes = 128;

// As text NAME=FILE, without commas: lists are separated by them.
struct LoraModule {
  std::string name;
  std::string path;
  bool operator==(const LoraModule&) const = default;
};

std::string ToText(const LoraModule& module);
// False without a name or a file.
bool FromText(std::string_view text, LoraModule& module);

template <>
constexpr const char* Expected<LoraModule>() {
  return "NAME=FILE";
}

}  // namespace tandem::config

#endif  // TANDEM_COMMON_CONFIG_LORA_MODULE_H_
