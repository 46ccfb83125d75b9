#include "common/transport/shm_segment.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <new>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "common/base/host.h"
#include "common/base/status.h"

namespace tandem::transport {
namespace {

constexpr uint64_t kMagic = 0x3173'6d65'6d64'6e74;  // "tndmems1"
constexpr uint32_t kVersion = 1;
constexpr int kSeals = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL;

// A file descriptor until it is released.
class Fd {
 public:
  explicit Fd(int fd) : fd_(fd) {}
  ~Fd() {
    if (fd_ >= 0) close(fd_);
  }
  Fd(const Fd&) = delete;
  Fd& operator=(const Fd&) = delete;
  int get() const { return fd_; }
  int Release() { return std::exchange(fd_, -1); }

 private:
  int fd_;
};

absl::Status SystemError(absl::StatusCode code, const std::string& what) {
  return absl::Status(code, absl::StrCat("shared memory: ", what, ": ", std::strerror(errno)));
}

absl::StatusOr<std::byte*> Map(int fd, size_t bytes) {
  void* data = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  if (data == MAP_FAILED) {
    return SystemError(absl::StatusCode::kResourceExhausted,
                       absl::StrCat("cannot map ", bytes, " bytes"));
  }
  return static_cast<std::byte*>(data);
}

struct Address {
  int32_t pid = 0;
  int32_t fd = 0;
  uint64_t bytes = 0;
};

absl::StatusOr<Address> ParseAddress(const std::string& text) {
  const std::vector<std::string> parts = absl::StrSplit(text, ':');
  Address address;
  if (parts.size() != 4 || parts[0] != "memfd" || !absl::SimpleAtoi(parts[1], &address.pid) ||
      !absl::SimpleAtoi(parts[2], &address.fd) || !absl::SimpleAtoi(parts[3], &address.bytes) ||
      address.pid <= 0 || address.fd < 0 || address.bytes < sizeof(ShmHeader)) {
    return absl::InvalidArgumentError(
        absl::StrCat("shared memory: '", text, "' is not memfd:<pid>:<fd>:<bytes>"));
  }
  return address;
}

absl::Status CheckHeader(const ShmHeader& header, const std::string& address, uint64_t bytes,
                         uint32_t kind, Epoch epoch) {
  if (header.magic != kMagic || header.version != kVersion || header.bytes != bytes ||
      header.kind != kind) {
    return absl::InvalidArgumentError(
        absl::StrCat("shared memory: ", address, " is no segment of kind ", kind));
  }
  if (header.epoch != epoch.value) {
    return absl::FailedPreconditionError(absl::StrCat("shared memory: ", address, " is of epoch ",
                                                      header.epoch, ", not ", epoch.value));
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::shared_ptr<ShmSegment>> ShmSegment::Create(size_t bytes, uint32_t kind,
                                                               Epoch epoch) {
  // The kernel overcommits until it kills processes, so an impossible size is rejected up front.
  // Half is left to other programs: segments are small compared to weights and KV cache.
  if (const uint64_t available = AvailableMemoryBytes(); bytes > available / 2) {
    return absl::ResourceExhaustedError(absl::StrCat("shared memory: a segment of ", bytes,
                                                     " bytes, at most half of the available ",
                                                     available, " may be taken"));
  }
  const size_t page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
  const size_t rounded = (std::max(bytes, sizeof(ShmHeader)) + page - 1) / page * page;
  Fd fd(memfd_create("tandem", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (fd.get() < 0) return SystemError(absl::StatusCode::kResourceExhausted, "memfd_create");
  // Allocated now: a full host is an error here, not a SIGBUS at first touch.
  if (fallocate(fd.get(), 0, 0, static_cast<off_t>(rounded)) != 0 ||
      fcntl(fd.get(), F_ADD_SEALS, kSeals) != 0) {
    return SystemError(absl::StatusCode::kResourceExhausted,
                       absl::StrCat("cannot make a segment of ", rounded, " bytes"));
  }
  TANDEM_ASSIGN_OR_RETURN(std::byte * data, Map(fd.get(), rounded));
  new (data) ShmHeader{.magic = kMagic,
                       .version = kVersion,
                       .kind = kind,
                       .bytes = rounded,
                       .epoch = epoch.value,
                       .creator_pid = getpid(),
                       .reserved = 0};
  return std::shared_ptr<ShmSegment>(new ShmSegment(fd.Release(), data, rounded));
}

absl::StatusOr<std::shared_ptr<ShmSegment>> ShmSegment::Open(const std::string& address,
                                                             uint32_t kind, Epoch epoch) {
  TANDEM_ASSIGN_OR_RETURN(const Address parsed, ParseAddress(address));
  const std::string path = absl::StrCat("/proc/", parsed.pid, "/fd/", parsed.fd);
  // Opening an arbitrary file must not block.
  Fd fd(open(path.c_str(), O_RDWR | O_CLOEXEC | O_NONBLOCK | O_NOCTTY));
  if (fd.get() < 0) {
    return SystemError(absl::StatusCode::kUnavailable, absl::StrCat("cannot open ", path));
  }
  struct stat info {};
  const int seals = fcntl(fd.get(), F_GET_SEALS);
  if (fstat(fd.get(), &info) != 0 || !S_ISREG(info.st_mode) || seals < 0 ||
      (seals & kSeals) != kSeals || static_cast<uint64_t>(info.st_size) != parsed.bytes) {
    return absl::InvalidArgumentError(
        absl::StrCat("shared memory: ", address, " is no sealed memfd of that size"));
  }
  TANDEM_ASSIGN_OR_RETURN(std::byte * data, Map(fd.get(), parsed.bytes));
  std::shared_ptr<ShmSegment> segment(new ShmSegment(fd.Release(), data, parsed.bytes));
  TANDEM_RETURN_IF_ERROR(CheckHeader(segment->header(), address, parsed.bytes, kind, epoch));
  return segment;
}

ShmSegment::~ShmSegment() {
  munmap(data_, bytes_);
  close(fd_);
}

std::string ShmSegment::address() const {
  return absl::StrCat("memfd:", getpid(), ":", fd_, ":", bytes_);
}

}  // namespace tandem::transport
