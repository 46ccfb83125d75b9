// ByteSize: an amount of memory. Written "512MiB", "2Gi" (powers of 1024), "24GB", "24g" (powers of
// 1000) or in bytes; "auto" is 0.
#ifndef TANDEM_COMMON_CONFIG_BYTE_SIZE_H_
#define TANDEM_COMMON_CONFIG_BYTE_SIZE_H_

#include <cstdint>

namespace tandem::config {

struct ByteSize {
  uint64_t bytes = 0;  // 0: auto

  bool is_auto() const { return bytes == 0; }
  bool operator==(const ByteSize&) const = default;
};

}  // namespace tandem::config

#endif  // TANDEM_COMMON_CONFIG_BYTE_SIZE_H_
