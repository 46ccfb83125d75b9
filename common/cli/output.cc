#include "common/cli/output.h"

#include <cerrno>
#include <cstring>
#include <iostream>

#include "absl/strings/str_cat.h"

namespace tandem::cli {
namespace {

// REQUIRES: errno was 0 before the operation on `out`.
absl::Status Outcome(const std::ostream& out) {
  if (out) return absl::OkStatus();
  return absl::DataLossError(
      absl::StrCat("stdout: ", errno == 0 ? "an earlier write failed" : std::strerror(errno)));
}

}  // namespace

absl::Status Write(std::ostream& out, std::string_view text) {
  errno = 0;
  out.write(text.data(), static_cast<std::streamsize>(text.size()));
  return Outcome(out);
}

absl::Status Flush(std::ostream& out) {
  errno = 0;
  out.flush();
  return Outcome(out);
}

absl::Status Print(std::string_view text) { return Write(std::cout, text); }

}  // namespace tandem::cli
