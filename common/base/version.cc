#include "common/base/version.h"

#include <string_view>

#include "absl/strings/str_cat.h"

// Defined by version_stamp.cc.
extern const char* const kTandemCommit;
extern const char* const kTandemCommitStatus;

namespace tandem {
namespace {

constexpr char kVersion[] = "0.1.0";

}  // namespace

std::string BuildVersion() {
  const std::string_view commit = kTandemCommit, status = kTandemCommitStatus;
  if (commit == "0") return absl::StrCat(kVersion, " (unknown commit)");
  return absl::StrCat(kVersion, " (commit ", kTandemCommit, status.empty() ? "" : ", ",
                      kTandemCommitStatus, ")");
}

}  // namespace tandem
