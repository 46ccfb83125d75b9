#include "common/config/lora_module.h"

namespace tandem::config {

std::string ToText(const LoraModule& module) { return module.name + "=" + module.path; }

bool FromText(std::string_view text, LoraModule& module) {
  const size_t equals = text.find('=');
  if (equals == 0 || equals >= text.size() - 1) return false;
  module = {.name = std::string(text.substr(0, equals)),
            .path = std::string(text.substr(equals + 1))};
  return true;
}

}  // namespace tandem::config
