// Bridges between std::string_view (our interfaces) and Debian Abseil's own absl::string_view.
#ifndef TANDEM_COMMON_BASE_STRINGS_H_
#define TANDEM_COMMON_BASE_STRINGS_H_

#include <string_view>

#include "absl/strings/string_view.h"

namespace tandem {

// For absl::StrCat and friends: absl::StrCat("key ", Sv(name)).
inline absl::string_view Sv(std::string_view text) { return {text.data(), text.size()}; }
// The reverse conversion.
inline std::string_view StdSv(absl::string_view text) { return {text.data(), text.size()}; }

}  // namespace tandem

#endif  // TANDEM_COMMON_BASE_STRINGS_H_
