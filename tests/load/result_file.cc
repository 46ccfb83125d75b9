#include "tests/load/result_file.h"

#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <system_error>

#include "absl/strings/str_cat.h"

namespace tandem::load {

absl::Status WriteResultFile(const std::string& path, const std::string& content) {
  const std::string part = absl::StrCat(path, ".part");
  std::ofstream file(part, std::ios::binary | std::ios::trunc);
  file << content;
  file.close();
  std::error_code error;
  if (file) std::filesystem::rename(part, path, error);
  if (file && !error) return absl::OkStatus();
  const std::string why = error ? error.message() : std::strerror(errno);
  std::filesystem::remove(part, error);
  return absl::DataLossError(absl::StrCat(path, ": cannot be written: ", why));
}

absl::Status CheckResultFile(const std::string& flag, const std::string& path) {
  std::filesystem::path folder = std::filesystem::path(path).parent_path();
  if (folder.empty()) folder = ".";
  std::error_code error;
  if (std::filesystem::is_directory(path, error)) {
    return absl::InvalidArgumentError(absl::StrCat(flag, ": ", path, " is a folder"));
  }
  if (access(folder.c_str(), W_OK | X_OK) == 0) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat(flag, ": ", folder.string(), ": ", std::strerror(errno)));
}

}  // namespace tandem::load
