#include "common/gguf/mapped_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <utility>

#include "absl/status/status.h"

namespace tandem::gguf {
namespace {

// Closes a descriptor; a mapping outlives it.
struct Descriptor {
  int fd;
  ~Descriptor() {
    if (fd >= 0) ::close(fd);
  }
};

}  // namespace

absl::StatusOr<MappedFile> MappedFile::Open(const std::string& path) {
  // O_NONBLOCK: opening a pipe without a writer must not wait for one.
  const Descriptor file{::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK)};
  if (file.fd < 0) return absl::ErrnoToStatus(errno, "cannot open the file");
  struct stat status {};
  if (::fstat(file.fd, &status) != 0) return absl::ErrnoToStatus(errno, "cannot stat the file");
  if (!S_ISREG(status.st_mode)) return absl::InvalidArgumentError("not a regular file");
  if (status.st_size == 0) return MappedFile();
  const auto size = static_cast<size_t>(status.st_size);
  void* start = ::mmap(nullptr, size, PROT_READ, MAP_SHARED, file.fd, 0);
  if (start == MAP_FAILED) return absl::ErrnoToStatus(errno, "cannot map the file");
  return MappedFile(std::span(static_cast<const std::byte*>(start), size));
}

MappedFile::MappedFile(MappedFile&& other) noexcept : bytes_(std::exchange(other.bytes_, {})) {}

MappedFile& MappedFile::operator=(MappedFile&& other) noexcept {
  std::swap(bytes_, other.bytes_);
  return *this;
}

void MappedFile::DropPages(std::span<const std::byte> part) const {
  const auto page = static_cast<uintptr_t>(::sysconf(_SC_PAGESIZE));
  const auto begin = reinterpret_cast<uintptr_t>(part.data()) / page * page;
  const auto end = reinterpret_cast<uintptr_t>(part.data()) + part.size();
  // Advisory: on failure the pages stay resident.
  if (!part.empty()) ::madvise(reinterpret_cast<void*>(begin), end - begin, MADV_DONTNEED);
}

MappedFile::~MappedFile() {
  if (!bytes_.empty()) ::munmap(const_cast<std::byte*>(bytes_.data()), bytes_.size());
}

}  // namespace tandem::gguf
