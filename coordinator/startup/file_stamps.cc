#include "coordinator/startup/file_stamps.h"

#include "absl/strings/str_cat.h"

namespace tandem::coordinator {

FileStamps FileStamps::Of(const std::vector<std::string>& paths) {
  FileStamps stamps;
  for (const std::string& path : paths) {
    struct stat state {};
    if (stat(path.c_str(), &state) == 0) stamps.stamps_.push_back({path, state});
  }
  return stamps;
}

uint64_t FileStamps::TotalBytes() const {
  uint64_t bytes = 0;
  for (const Stamp& stamp : stamps_) bytes += static_cast<uint64_t>(stamp.state.st_size);
  return bytes;
}

std::string FileStamps::Changes() const {
  for (const auto& [path, then] : stamps_) {
    struct stat now {};
    if (stat(path.c_str(), &now) != 0) continue;
    if (now.st_dev != then.st_dev || now.st_ino != then.st_ino) continue;
    if (now.st_size != then.st_size) {
      return absl::StrCat("model file ", path, " was changed while it was served: it had ",
                          then.st_size, " bytes, now ", now.st_size);
    }
    if (now.st_mtim.tv_sec != then.st_mtim.tv_sec || now.st_mtim.tv_nsec != then.st_mtim.tv_nsec) {
      return absl::StrCat("model file ", path, " was written to while it was served");
    }
  }
  return "";
}

}  // namespace tandem::coordinator
