// FileStamps: size and time of a model's files as they were when it was read. The workers map the
// files: one that is written to or cut later gives wrong numbers, or ends them with SIGBUS.
#ifndef TANDEM_COORDINATOR_STARTUP_FILE_STAMPS_H_
#define TANDEM_COORDINATOR_STARTUP_FILE_STAMPS_H_

#include <sys/stat.h>

#include <cstdint>
#include <string>
#include <vector>

namespace tandem::coordinator {

// Thread-safe: never changes.
class FileStamps {
 public:
  // Those of `paths` that exist.
  static FileStamps Of(const std::vector<std::string>& paths);

  // The files' sizes together.
  uint64_t TotalBytes() const;

  // Names the first file that has changed since, and how; empty if none has. A file that was
  // removed or replaced is no change: what is mapped is the old one.
  std::string Changes() const;

 private:
  struct Stamp {
    std::string path;
    struct stat state;
  };
  std::vector<Stamp> stamps_;
};

}  // namespace tandem::coordinator

#endif  // TANDEM_COORDINATOR_STARTUP_FILE_STAMPS_H_
