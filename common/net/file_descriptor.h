// FileDescriptor: owns a descriptor and closes it.
#ifndef TANDEM_COMMON_NET_FILE_DESCRIPTOR_H_
#define TANDEM_COMMON_NET_FILE_DESCRIPTOR_H_

#include <unistd.h>

#include <utility>

namespace tandem::net {

class FileDescriptor {
 public:
  FileDescriptor() = default;
  explicit FileDescriptor(int fd) : fd_(fd) {}
  FileDescriptor(FileDescriptor&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  FileDescriptor& operator=(FileDescriptor&& other) noexcept {
    std::swap(fd_, other.fd_);
    return *this;
  }
  ~FileDescriptor() {
    if (fd_ >= 0) close(fd_);
  }

  int get() const { return fd_; }  // -1: none

 private:
  int fd_ = -1;
};

}  // namespace tandem::net

#endif  // TANDEM_COMMON_NET_FILE_DESCRIPTOR_H_
