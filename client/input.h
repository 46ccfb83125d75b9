// Text from a user: flags, files and stdin, checked to be UTF-8.
#ifndef TANDEM_CLIENT_INPUT_H_
#define TANDEM_CLIENT_INPUT_H_

#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace tandem::client {

// INVALID_ARGUMENT with the offset if `text` is not UTF-8; `what` names it: a flag, a file, a line.
absl::Status CheckUtf8(std::string_view what, std::string_view text);

// All of a file, or of stdin for "-". NOT_FOUND if it cannot be read.
absl::StatusOr<std::string> ReadAll(const std::string& path);

// The path as messages name it: "stdin" for "-".
std::string InputName(const std::string& path);

}  // namespace tandem::client

#endif  // TANDEM_CLIENT_INPUT_H_
