// RepoCache: a repository's files on disk, in the layout of huggingface_hub:
//
//   CACHE/models--OWNER--REPO/blobs/DIGEST                  contents
//                            /blobs/DIGEST.incomplete       of which a part is fetched
//                            /snapshots/COMMIT/PATH         -> ../../blobs/DIGEST
//                            /refs/REVISION                 holds COMMIT; main, or another
//   CACHE/.locks/models--OWNER--REPO/DIGEST.lock
//
// Source: https://huggingface.co/docs/huggingface_hub/guides/manage-cache. Several processes may
// use a cache: every change is one rename.
#ifndef TANDEM_COMMON_HUB_REPO_CACHE_H_
#define TANDEM_COMMON_HUB_REPO_CACHE_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "common/hub/model_name.h"
#include "common/hub/repo_file.h"

namespace tandem::hub {

class RepoCache {
 public:
  RepoCache(const std::string& cache, const ModelName& name);

  const std::string& folder() const { return folder_; }
  std::string BlobPath(const Content& content) const;
  std::string IncompletePath(const Content& content) const;
  std::string LockPath(const Content& content) const;
  std::string SnapshotPath(const std::string& commit, const std::string& path) const;

  // Whether the content is there in full, judged by its size: it was checked when it was fetched.
  bool HasBlob(const Content& content) const;
  // The same, and that the snapshot has it under its name.
  bool HasSnapshotFile(const std::string& commit, const RepoFile& file) const;
  // Bytes of the content that any process has fetched so far; grows while one fetches it.
  uint64_t IncompleteBytes(const Content& content) const;

  // Creates the folders that a fetch of the content writes to.
  absl::Status MakeFolders(const Content& content) const;
  // Makes the blob appear as `file.path` in the snapshot.
  absl::Status Link(const std::string& commit, const RepoFile& file) const;
  // The commit of the name's revision as of the last fetch; the revision itself if none is
  // recorded.
  std::string Commit() const;
  absl::Status SetCommit(const std::string& commit) const;
  // The model files of a snapshot, sorted by path, without digests; a dangling link is left out.
  std::vector<RepoFile> SnapshotFiles(const std::string& commit) const;

 private:
  std::string folder_;
  std::string locks_;
  std::string revision_;
};

}  // namespace tandem::hub

#endif  // TANDEM_COMMON_HUB_REPO_CACHE_H_
