// WatchedFile: a small text file, such as one of secrets, that is read again when it has changed.
#ifndef TANDEM_COMMON_BASE_WATCHED_FILE_H_
#define TANDEM_COMMON_BASE_WATCHED_FILE_H_

#include <sys/stat.h>

#include <cstddef>
#include <string>
#include <utility>

#include "absl/status/statusor.h"

namespace tandem {

// Not thread-safe. Replace such a file by renaming another one over it: what is written in place
// may be read half.
class WatchedFile {
 public:
  // `flag` named the file, and begins every error.
  WatchedFile(std::string flag, std::string path, size_t most_bytes)
      : flag_(std::move(flag)), path_(std::move(path)), most_bytes_(most_bytes) {}

  // The content. INVALID_ARGUMENT with flag, path and reason if it can't be read or has more than
  // `most_bytes`.
  absl::StatusOr<std::string> Read();
  // Whether there is another file now, or another content, than the last Read found.
  bool Changed() const;

  const std::string& path() const { return path_; }
  // "--tokens: '/etc/tandem/tokens'".
  std::string Name() const { return flag_ + ": '" + path_ + "'"; }
  // The permissions that the last Read found.
  mode_t mode() const { return found_.st_mode; }

 private:
  const std::string flag_;
  const std::string path_;
  const size_t most_bytes_;
  struct stat found_ {};  // zeros: none
};

}  // namespace tandem

#endif  // TANDEM_COMMON_BASE_WATCHED_FILE_H_
