#include "common/base/token_file.h"

#include <errno.h>
#include <string.h>

#include <fstream>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"

namespace tandem {

absl::StatusOr<std::string> ReadTokenFile(const std::string& flag, const std::string& path) {
  errno = 0;
  std::ifstream file(path);
  if (!file) {
    return absl::InvalidArgumentError(
        absl::StrCat(flag, ": cannot read '", path, "': ", strerror(errno)));
  }
  std::string line;
  std::getline(file, line);
  const std::string token(absl::StripAsciiWhitespace(line));
  if (token.empty()) {
    return absl::InvalidArgumentError(absl::StrCat(flag, ": '", path, "' holds no token"));
  }
  if (token.size() > kMaxTokenBytes) {
    return absl::InvalidArgumentError(absl::StrCat(flag, ": the token in '", path, "' has ",
                                                   token.size(), " bytes, at most ",
                                                   kMaxTokenBytes));
  }
  return token;
}

}  // namespace tandem
