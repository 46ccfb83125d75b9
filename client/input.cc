#include "client/input.h"

#include <fstream>
#include <iostream>

#include "absl/strings/str_cat.h"
#include "common/base/strings.h"
#include "common/base/utf8.h"

namespace tandem::client {

absl::Status CheckUtf8(std::string_view what, std::string_view text) {
  const size_t valid = ValidUtf8Prefix(text);
  if (valid == text.size()) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat(Sv(what), " is not valid UTF-8 at byte ", valid, " of ", text.size()));
}

absl::StatusOr<std::string> ReadAll(const std::string& path) {
  std::ifstream file;
  if (path != "-") file.open(path, std::ios::binary);
  std::istream& in = path == "-" ? std::cin : file;
  std::string text;
  for (char part[1 << 16]; in.read(part, sizeof(part)) || in.gcount() > 0;) {
    text.append(part, static_cast<size_t>(in.gcount()));
  }
  // A directory opens, but cannot be read.
  if (in.bad() || (path != "-" && !file.is_open())) {
    return absl::NotFoundError(absl::StrCat(InputName(path), ": cannot be read"));
  }
  return text;
}

std::string InputName(const std::string& path) { return path == "-" ? "stdin" : path; }

}  // namespace tandem::client
