#include "tools/cuda_emulation/device_model.h"

#include <cstdio>
#include <cstdlib>

namespace tandem::emulation {
namespace {

[[noreturn]] void Refuse(const char* name, const char* text) {
  std::fprintf(stderr, "CUDA emulation: %s=%s is not a value that it knows\n", name, text);
  std::abort();
}

long Number(const char* name, long otherwise) {
  const char* const text = std::getenv(name);
  if (text == nullptr) return otherwise;
  char* end = nullptr;
  const long value = std::strtol(text, &end, 10);
  if (value <= 0 || *end != '\0') Refuse(name, text);
  return value;
}

size_t SharedBytesOf(long arch) {
  switch (arch) {
    case 80:
      return 163 * 1024;
    case 86:
    case 89:
      return 99 * 1024;
    case 90:
      return 227 * 1024;
  }
  Refuse("TANDEM_EMULATED_ARCH", std::getenv("TANDEM_EMULATED_ARCH"));
}

}  // namespace

DeviceModel TheDeviceModel() {
  const long arch = Number("TANDEM_EMULATED_ARCH", 90);
  return {.multiprocessors = static_cast<int>(Number("TANDEM_EMULATED_SMS", 4)),
          .major = static_cast<int>(arch / 10),
          .minor = static_cast<int>(arch % 10),
          .shared_bytes = SharedBytesOf(arch),
          .memory_bytes = static_cast<size_t>(Number("TANDEM_EMULATED_GIB", 4)) << 30};
}

}  // namespace tandem::emulation
