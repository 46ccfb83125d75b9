#include "common/base/token_file.h"

#include <fstream>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"

namespace tandem {

absl::StatusOr<std::string> ReadTokenFile(const std::string& flag, const std::string& path) {
  std::ifstream file(path);
  std::string token;
  if (!file || !std::getline(file, token) || token.empty()) {
    return absl::InvalidArgumentError(absl::StrCat(flag, " '", path, "' holds no token"));
  }
  return std::string(absl::StripAsciiWhitespace(token));
}

}  // namespace tandem
