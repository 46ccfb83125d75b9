// A whole file mapped read-only; the mapping ends with the object.
#ifndef TANDEM_COMMON_GGUF_MAPPED_FILE_H_
#define TANDEM_COMMON_GGUF_MAPPED_FILE_H_

#include <cstddef>
#include <span>
#include <string>

#include "absl/status/statusor.h"

namespace tandem::gguf {

// Movable, not copyable. Views into bytes() stay valid when the object moves. Reading is
// thread-safe.
class MappedFile {
 public:
  // NOT_FOUND, PERMISSION_DENIED or INVALID_ARGUMENT (not a regular file); messages do not contain
  // the path.
  static absl::StatusOr<MappedFile> Open(const std::string& path);

  MappedFile() = default;
  MappedFile(MappedFile&& other) noexcept;
  MappedFile& operator=(MappedFile&& other) noexcept;
  ~MappedFile();

  std::span<const std::byte> bytes() const { return bytes_; }
  // Releases the physical pages of `part`; a later read loads them from the file again. REQUIRES:
  // `part` is in bytes().
  void DropPages(std::span<const std::byte> part) const;

 private:
  explicit MappedFile(std::span<const std::byte> bytes) : bytes_(bytes) {}

  std::span<const std::byte> bytes_;  // empty: nothing is mapped
};

}  // namespace tandem::gguf

#endif  // TANDEM_COMMON_GGUF_MAPPED_FILE_H_
