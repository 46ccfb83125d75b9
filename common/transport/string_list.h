// Lists of strings as one frame: uint32 little-endian length, then the bytes, for each. Internal to
// the host group.
#ifndef TANDEM_COMMON_TRANSPORT_STRING_LIST_H_
#define TANDEM_COMMON_TRANSPORT_STRING_LIST_H_

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "common/transport/channel.h"

namespace tandem::transport {

Frame PackStrings(const std::vector<std::string>& strings);
// Nothing when the frame is no such list.
std::optional<std::vector<std::string>> UnpackStrings(std::span<const uint8_t> frame);

}  // namespace tandem::transport

#endif  // TANDEM_COMMON_TRANSPORT_STRING_LIST_H_
