// ShmSegment: anonymous memory shared between processes of one host: a memfd, which has no name, so
// that nothing is left behind by a crash. The creator hands its address
// ("memfd:<pid>:<fd>:<bytes>") to peers over a control channel; they open it through
// /proc/<pid>/fd/<fd> while the creator is running. Sealed: it cannot shrink while a peer has it
// mapped.
#ifndef TANDEM_COMMON_TRANSPORT_SHM_SEGMENT_H_
#define TANDEM_COMMON_TRANSPORT_SHM_SEGMENT_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/base/ids.h"

namespace tandem::transport {

// The header of every segment. Written by the creator before the address is shared, read-only
// afterwards.
struct ShmHeader {
  uint64_t magic;
  uint32_t version;
  uint32_t kind;  // content of the segment; a number chosen by its user
  uint64_t bytes;
  uint64_t epoch;
  int32_t creator_pid;
  uint32_t reserved;
};

// Unmaps on destruction. Thread-safe; users synchronise access to the memory.
class ShmSegment {
 public:
  // Zeroed memory of at least `bytes` with the header filled in. RESOURCE_EXHAUSTED when there is
  // none.
  static absl::StatusOr<std::shared_ptr<ShmSegment>> Create(size_t bytes, uint32_t kind,
                                                            Epoch epoch);
  // Maps a peer's segment. INVALID_ARGUMENT for an invalid address or another kind of segment,
  // UNAVAILABLE when the creator is gone, FAILED_PRECONDITION for a segment of another epoch.
  static absl::StatusOr<std::shared_ptr<ShmSegment>> Open(const std::string& address, uint32_t kind,
                                                          Epoch epoch);
  ~ShmSegment();
  ShmSegment(const ShmSegment&) = delete;
  ShmSegment& operator=(const ShmSegment&) = delete;

  // Page-aligned; begins with the header.
  std::byte* data() const { return data_; }
  size_t bytes() const { return bytes_; }
  const ShmHeader& header() const { return *reinterpret_cast<const ShmHeader*>(data_); }
  // For Open in this or another process, during this object's lifetime.
  std::string address() const;

 private:
  ShmSegment(int fd, std::byte* data, size_t bytes) : fd_(fd), data_(data), bytes_(bytes) {}

  const int fd_;
  std::byte* const data_;
  const size_t bytes_;
};

}  // namespace tandem::transport

#endif  // TANDEM_COMMON_TRANSPORT_SHM_SEGMENT_H_
