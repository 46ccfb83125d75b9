#include "common/base/watched_file.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "absl/strings/str_cat.h"

namespace tandem {
namespace {

absl::StatusOr<std::string> ReadAll(int fd, size_t most_bytes) {
  std::string text;
  char part[4096];
  while (true) {
    const ssize_t count = read(fd, part, sizeof(part));
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return absl::InvalidArgumentError(strerror(errno));
    if (count == 0) return text;
    text.append(part, static_cast<size_t>(count));
    if (text.size() > most_bytes) {
      return absl::InvalidArgumentError(absl::StrCat("it has more than ", most_bytes, " bytes"));
    }
  }
}

}  // namespace

absl::StatusOr<std::string> WatchedFile::Read() {
  found_ = {};
  const int fd = open(path_.c_str(), O_RDONLY | O_CLOEXEC);
  absl::StatusOr<std::string> text = absl::InvalidArgumentError(strerror(errno));
  if (fd >= 0) {
    fstat(fd, &found_);
    text = ReadAll(fd, most_bytes_);
    close(fd);
  }
  if (text.ok()) return text;
  return absl::InvalidArgumentError(
      absl::StrCat(Name(), " cannot be read: ", text.status().message()));
}

bool WatchedFile::Changed() const {
  struct stat now {};
  if (stat(path_.c_str(), &now) != 0) now = {};
  return now.st_dev != found_.st_dev || now.st_ino != found_.st_ino ||
         now.st_size != found_.st_size || now.st_mtim.tv_sec != found_.st_mtim.tv_sec ||
         now.st_mtim.tv_nsec != found_.st_mtim.tv_nsec;
}

}  // namespace tandem
