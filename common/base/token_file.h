// The file with the secret by which workers authenticate to their coordinator.
#ifndef TANDEM_COMMON_BASE_TOKEN_FILE_H_
#define TANDEM_COMMON_BASE_TOKEN_FILE_H_

#include <cstddef>
#include <string>

#include "absl/status/statusor.h"

namespace tandem {

// A token travels in a header of HTTP/2.
inline constexpr size_t kMaxTokenBytes = 4096;

// The first line of `path`, stripped of white space. INVALID_ARGUMENT naming `flag`, path and
// reason if there is none.
absl::StatusOr<std::string> ReadTokenFile(const std::string& flag, const std::string& path);

}  // namespace tandem

#endif  // TANDEM_COMMON_BASE_TOKEN_FILE_H_
