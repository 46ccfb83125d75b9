// RepoFile: a file of a repository.
#ifndef TANDEM_COMMON_HUB_REPO_FILE_H_
#define TANDEM_COMMON_HUB_REPO_FILE_H_

#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "common/hub/digest.h"

namespace tandem::hub {

struct RepoFile {
  std::string path;  // relative, with slashes; checked
  Content content;   // without hex for files found in the cache

  bool operator==(const RepoFile&) const = default;
};

// OK if `path`, from an untrusted listing, stays below a folder that it is appended to: relative,
// no empty, "." or ".." component, no control characters, of bounded length. INVALID_ARGUMENT
// otherwise.
absl::Status CheckRepoPath(std::string_view path);

// Whether a path is that of a model: *.gguf, but no projector and no importance matrix.
bool IsModelFile(std::string_view path);

}  // namespace tandem::hub

#endif  // TANDEM_COMMON_HUB_REPO_FILE_H_
