#include "common/hub/repo_file.h"

#include <algorithm>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "common/base/strings.h"
#include "common/gguf/quote.h"
#include "common/gguf/split.h"

namespace tandem::hub {
namespace {

constexpr size_t kMaxPathLength = 1024;
constexpr size_t kMaxNameLength = 200;  // below NAME_MAX, so that temporary names fit

bool IsName(absl::string_view name) {
  return !name.empty() && name != "." && name != ".." && name.size() <= kMaxNameLength &&
         std::none_of(name.begin(), name.end(),
                      [](char c) { return absl::ascii_iscntrl(c) || c == '\\'; });
}

}  // namespace

absl::Status CheckRepoPath(std::string_view path) {
  if (path.size() <= kMaxPathLength) {
    const std::vector<absl::string_view> names = absl::StrSplit(Sv(path), '/');
    if (std::all_of(names.begin(), names.end(), IsName)) return absl::OkStatus();
  }
  return absl::InvalidArgumentError(
      absl::StrCat("the repository lists ", gguf::Quoted(path), ", which is no safe file name"));
}

bool IsModelFile(std::string_view path) {
  if (!path.ends_with(".gguf")) return false;
  const std::string name = absl::AsciiStrToLower(Sv(gguf::FileName(path)));
  return !absl::StrContains(name, "mmproj") && !absl::StrContains(name, "imatrix");
}

}  // namespace tandem::hub
