#include "coordinator/process/secret_file.h"

#include <sys/mman.h>
#include <unistd.h>

#include <random>

#include "absl/strings/str_cat.h"

namespace tandem::coordinator {

std::string DrawToken() {
  std::random_device device;
  std::string token;
  for (int i = 0; i < 4; ++i) absl::StrAppend(&token, absl::Hex(device(), absl::kZeroPad8));
  return token;
}

absl::StatusOr<std::unique_ptr<SecretFile>> SecretFile::Create(const std::string& text) {
  const int fd = memfd_create("tandem-token", MFD_CLOEXEC);
  if (fd < 0) return absl::ErrnoToStatus(errno, "memfd_create for a token");
  std::unique_ptr<SecretFile> file(new SecretFile(fd));
  if (write(fd, text.data(), text.size()) != static_cast<ssize_t>(text.size())) {
    return absl::ErrnoToStatus(errno, "write of a token");
  }
  return file;
}

SecretFile::~SecretFile() { close(fd_); }

std::string SecretFile::path() const { return absl::StrCat("/proc/", getpid(), "/fd/", fd_); }

}  // namespace tandem::coordinator
