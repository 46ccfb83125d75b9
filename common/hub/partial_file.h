// PartialFile: a content while it is fetched: what has arrived, on disk and in its digest.
#ifndef TANDEM_COMMON_HUB_PARTIAL_FILE_H_
#define TANDEM_COMMON_HUB_PARTIAL_FILE_H_

#include <cstdint>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/hub/digest.h"
#include "common/hub/settings.h"

namespace tandem::hub {

// One thread. What has arrived stays on disk unless it was moved to its place.
class PartialFile {
 public:
  // Opens or creates the file, and reads what an earlier process has left in it. A file that is
  // longer than the content is emptied.
  static absl::StatusOr<PartialFile> Open(const std::string& path, const Content& content,
                                          const Cancelled& cancelled);
  PartialFile(PartialFile&& other) noexcept;
  PartialFile& operator=(PartialFile&&) = delete;
  ~PartialFile();

  uint64_t size_bytes() const { return size_bytes_; }
  bool complete() const { return size_bytes_ == content_.size_bytes; }
  // ABORTED if it would become longer than the content.
  absl::Status Append(std::string_view bytes);
  // Empties it.
  absl::Status Restart();
  // Whether the digest is the content's. REQUIRES: complete(), called once after Open or Restart.
  bool Matches();
  // Makes it durable and renames it to `path`. REQUIRES: Matches() was true.
  absl::Status MoveTo(const std::string& path);

 private:
  PartialFile(int fd, const std::string& path, const Content& content);
  absl::Status ReadExisting(const Cancelled& cancelled);

  int fd_;
  std::string path_;
  Content content_;
  Digest digest_;
  uint64_t size_bytes_ = 0;
};

}  // namespace tandem::hub

#endif  // TANDEM_COMMON_HUB_PARTIAL_FILE_H_
