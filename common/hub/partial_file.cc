#include "common/hub/partial_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/base/check.h"
#include "common/base/status.h"

namespace tandem::hub {
namespace {

constexpr size_t kReadBytes = 1 << 20;

}  // namespace

PartialFile::PartialFile(int fd, const std::string& path, const Content& content)
    : fd_(fd), path_(path), content_(content), digest_(content) {}

PartialFile::PartialFile(PartialFile&& other) noexcept
    : fd_(std::exchange(other.fd_, -1)),
      path_(std::move(other.path_)),
      content_(std::move(other.content_)),
      digest_(std::move(other.digest_)),
      size_bytes_(other.size_bytes_) {}

PartialFile::~PartialFile() {
  if (fd_ >= 0) ::close(fd_);
}

absl::StatusOr<PartialFile> PartialFile::Open(const std::string& path, const Content& content,
                                              const Cancelled& cancelled) {
  const int fd = ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0644);
  if (fd < 0) return absl::ErrnoToStatus(errno, path);
  PartialFile file(fd, path, content);
  TANDEM_RETURN_IF_ERROR(file.ReadExisting(cancelled));
  return file;
}

absl::Status PartialFile::ReadExisting(const Cancelled& cancelled) {
  std::vector<char> buffer(kReadBytes);
  for (;;) {
    const ssize_t got = ::pread(fd_, buffer.data(), buffer.size(), static_cast<off_t>(size_bytes_));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return absl::ErrnoToStatus(errno, path_);
    if (got == 0) return absl::OkStatus();
    if (cancelled()) return absl::CancelledError("stopped");
    if (size_bytes_ + static_cast<uint64_t>(got) > content_.size_bytes) return Restart();
    digest_.Update({buffer.data(), static_cast<size_t>(got)});
    size_bytes_ += static_cast<uint64_t>(got);
  }
}

absl::Status PartialFile::Append(std::string_view bytes) {
  if (bytes.size() > content_.size_bytes - size_bytes_) {
    return absl::AbortedError(absl::StrCat("the server sends more than the ", content_.size_bytes,
                                           " bytes that its listing says"));
  }
  while (!bytes.empty()) {
    // At its offset, so that a second writer, where locks do not work, writes the same bytes.
    const ssize_t put = ::pwrite(fd_, bytes.data(), bytes.size(), static_cast<off_t>(size_bytes_));
    if (put < 0 && errno == EINTR) continue;
    if (put < 0) return absl::ErrnoToStatus(errno, path_);
    const std::string_view written = bytes.substr(0, static_cast<size_t>(put));
    digest_.Update(written);
    size_bytes_ += written.size();
    bytes.remove_prefix(written.size());
  }
  return absl::OkStatus();
}

absl::Status PartialFile::Restart() {
  if (::ftruncate(fd_, 0) != 0) return absl::ErrnoToStatus(errno, path_);
  digest_ = Digest(content_);
  size_bytes_ = 0;
  return absl::OkStatus();
}

bool PartialFile::Matches() {
  TANDEM_CHECK(complete());
  return digest_.Hex() == content_.hex;
}

absl::Status PartialFile::MoveTo(const std::string& path) {
  if (::fdatasync(fd_) != 0) return absl::ErrnoToStatus(errno, path_);
  if (::rename(path_.c_str(), path.c_str()) != 0) {
    return absl::ErrnoToStatus(errno, absl::StrCat("cannot create ", path));
  }
  return absl::OkStatus();
}

}  // namespace tandem::hub
