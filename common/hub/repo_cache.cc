#include "common/hub/repo_cache.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <fstream>
#include <string_view>
#include <system_error>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "common/base/status.h"

namespace tandem::hub {
namespace {

namespace fs = std::filesystem;

absl::Status MakeFolder(const fs::path& folder) {
  std::error_code error;
  fs::create_directories(folder, error);
  if (!error) return absl::OkStatus();
  return absl::ErrnoToStatus(error.value(), absl::StrCat("cannot create ", folder.string()));
}

// Unique among the processes that share the cache.
std::string TemporaryPath(const std::string& path) {
  return absl::StrCat(path, ".", getpid(), ".tmp");
}

absl::Status Rename(const std::string& from, const std::string& to) {
  if (::rename(from.c_str(), to.c_str()) == 0) return absl::OkStatus();
  const int error = errno;
  ::unlink(from.c_str());
  return absl::ErrnoToStatus(error, absl::StrCat("cannot create ", to));
}

// Of a regular file, or of one that a link leads to.
bool HasSize(const std::string& path, uint64_t size_bytes) {
  std::error_code error;
  return fs::is_regular_file(path, error) && fs::file_size(path, error) == size_bytes && !error;
}

// Also one that is cut short, as other programs may write it.
bool LooksLikeCommit(const std::string& text) {
  return text.size() >= 7 && text.size() <= 64 &&
         std::all_of(text.begin(), text.end(), absl::ascii_isxdigit);
}

}  // namespace

RepoCache::RepoCache(const std::string& cache, const ModelName& name) {
  const std::string repo = absl::StrCat("models--", name.owner, "--", name.repo);
  folder_ = absl::StrCat(cache, "/", repo);
  locks_ = absl::StrCat(cache, "/.locks/", repo);
  revision_ = name.revision;
}

std::string RepoCache::BlobPath(const Content& content) const {
  return absl::StrCat(folder_, "/blobs/", content.hex);
}

std::string RepoCache::IncompletePath(const Content& content) const {
  return absl::StrCat(BlobPath(content), ".incomplete");
}

std::string RepoCache::LockPath(const Content& content) const {
  return absl::StrCat(locks_, "/", content.hex, ".lock");
}

std::string RepoCache::SnapshotPath(const std::string& commit, const std::string& path) const {
  return absl::StrCat(folder_, "/snapshots/", commit, "/", path);
}

bool RepoCache::HasBlob(const Content& content) const {
  return HasSize(BlobPath(content), content.size_bytes);
}

bool RepoCache::HasSnapshotFile(const std::string& commit, const RepoFile& file) const {
  const std::string path = SnapshotPath(commit, file.path);
  if (!HasSize(path, file.content.size_bytes)) return false;
  std::error_code no_link;
  const fs::path target = fs::read_symlink(path, no_link);
  return no_link || target.filename() == file.content.hex;
}

uint64_t RepoCache::IncompleteBytes(const Content& content) const {
  uint64_t bytes = 0;
  std::error_code error;
  for (auto entry = fs::directory_iterator(absl::StrCat(folder_, "/blobs"), error);
       !error && entry != fs::directory_iterator(); entry.increment(error)) {
    const std::string name = entry->path().filename().string();
    if (!name.starts_with(content.hex) || !name.ends_with(".incomplete")) continue;
    std::error_code gone;
    const uintmax_t size = entry->file_size(gone);
    if (!gone) bytes += size;
  }
  return bytes;
}

absl::Status RepoCache::MakeFolders(const Content& content) const {
  TANDEM_RETURN_IF_ERROR(MakeFolder(fs::path(BlobPath(content)).parent_path()));
  return MakeFolder(fs::path(LockPath(content)).parent_path());
}

absl::Status RepoCache::Link(const std::string& commit, const RepoFile& file) const {
  const std::string path = SnapshotPath(commit, file.path);
  TANDEM_RETURN_IF_ERROR(MakeFolder(fs::path(path).parent_path()));
  std::string target = "../../blobs/" + file.content.hex;
  for (const char c : file.path) {
    if (c == '/') target = "../" + target;
  }
  const std::string temporary = TemporaryPath(path);
  ::unlink(temporary.c_str());
  if (::symlink(target.c_str(), temporary.c_str()) != 0) {
    return absl::ErrnoToStatus(errno, absl::StrCat("cannot create a symbolic link at ", temporary));
  }
  return Rename(temporary, path);
}

std::string RepoCache::Commit() const {
  std::ifstream file(absl::StrCat(folder_, "/refs/", revision_));
  std::string commit;
  return file >> commit && LooksLikeCommit(commit) ? commit : revision_;
}

absl::Status RepoCache::SetCommit(const std::string& commit) const {
  if (Commit() == commit) return absl::OkStatus();  // the cache may be read-only
  const std::string path = absl::StrCat(folder_, "/refs/", revision_);
  TANDEM_RETURN_IF_ERROR(MakeFolder(fs::path(path).parent_path()));
  const std::string temporary = TemporaryPath(path);
  std::ofstream file(temporary, std::ios::trunc);
  if (!(file << commit) || !file.flush()) {
    return absl::UnavailableError(absl::StrCat("cannot write ", temporary));
  }
  return Rename(temporary, path);
}

std::vector<RepoFile> RepoCache::SnapshotFiles(const std::string& commit) const {
  const fs::path folder = absl::StrCat(folder_, "/snapshots/", commit);
  std::vector<RepoFile> files;
  std::error_code error;
  for (auto entry = fs::recursive_directory_iterator(folder, error);
       !error && entry != fs::recursive_directory_iterator(); entry.increment(error)) {
    std::error_code no_file;
    const std::string path = entry->path().lexically_relative(folder).string();
    if (!IsModelFile(path) || !CheckRepoPath(path).ok()) continue;
    if (!entry->is_regular_file(no_file)) continue;
    const uintmax_t size = entry->file_size(no_file);
    if (!no_file) files.push_back({.path = path, .content = {.size_bytes = size}});
  }
  std::sort(files.begin(), files.end(),
            [](const RepoFile& a, const RepoFile& b) { return a.path < b.path; });
  return files;
}

}  // namespace tandem::hub
