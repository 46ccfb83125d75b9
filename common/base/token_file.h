// The file with the secret that workers show their coordinator.
#ifndef TANDEM_COMMON_BASE_TOKEN_FILE_H_
#define TANDEM_COMMON_BASE_TOKEN_FILE_H_

#include <string>

#include "absl/status/statusor.h"

namespace tandem {

// The first line of `path`, without blanks around it. INVALID_ARGUMENT naming `flag` and path when
// there is none.
absl::StatusOr<std::string> ReadTokenFile(const std::string& flag, const std::string& path);

}  // namespace tandem

#endif  // TANDEM_COMMON_BASE_TOKEN_FILE_H_
