#include "common/hub/fetch_file.h"

#include <algorithm>
#include <filesystem>
#include <optional>
#include <system_error>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "common/base/log.h"
#include "common/base/status.h"
#include "common/hub/file_lock.h"
#include "common/hub/partial_file.h"
#include "common/hub/progress.h"
#include "common/hub/retries.h"
#include "common/model/human_bytes.h"

namespace tandem::hub {
namespace {

// An attempt that got less counts as failed, so that a server cannot drip a file forever.
constexpr uint64_t kProgressBytes = 1 << 20;

absl::Status CheckSpace(const RepoCache& cache, uint64_t needed_bytes) {
  std::error_code error;
  const auto space = std::filesystem::space(cache.folder(), error);
  if (error || space.available >= needed_bytes) return absl::OkStatus();
  return absl::ResourceExhaustedError(
      absl::StrCat(cache.folder(), ": needed ", model::HumanBytes(needed_bytes),
                   " of disk space, found ", model::HumanBytes(space.available)));
}

// Whether the hub's ETag, if it sends one, is that of the listing.
absl::Status CheckTag(const HttpResponse& response, const Content& content) {
  absl::string_view tag = response.linked_etag;
  absl::ConsumePrefix(&tag, "W/");
  absl::ConsumePrefix(&tag, "\"");
  absl::ConsumeSuffix(&tag, "\"");
  if (tag.empty() || tag == content.hex) return absl::OkStatus();
  return absl::FailedPreconditionError(
      "the repository has changed since it was listed; run this again");
}

// Makes `partial` ready for the body of `response`: at the range's start, or empty.
absl::Status BeginBody(const HttpResponse& response, const Content& content, PartialFile& partial) {
  TANDEM_RETURN_IF_ERROR(CheckTag(response, content));
  if (response.status == 206) {
    const std::string wanted = absl::StrCat("bytes ", partial.size_bytes(), "-");
    if (!absl::StartsWith(response.content_range, wanted)) {
      return absl::AbortedError("the server sends another range than requested");
    }
  } else if (partial.size_bytes() > 0) {
    TANDEM_LOG(kInfo) << "the server does not continue files: fetching from the start";
    TANDEM_RETURN_IF_ERROR(partial.Restart());
  }
  const uint64_t rest = content.size_bytes - partial.size_bytes();
  if (response.content_length.has_value() && *response.content_length != rest) {
    return absl::AbortedError(absl::StrCat("the server announces ", *response.content_length,
                                           " bytes, its listing says ", rest));
  }
  return absl::OkStatus();
}

// One request for the rest of the file.
absl::Status FetchRest(HttpClient& client, const Settings& settings, const std::string& url,
                       const Content& content, PartialFile& partial, Progress& progress) {
  bool begun = false;
  const auto on_body = [&](const HttpResponse& response, std::string_view bytes) {
    if (!begun) TANDEM_RETURN_IF_ERROR(BeginBody(response, content, partial));
    begun = true;
    TANDEM_RETURN_IF_ERROR(partial.Append(bytes));
    progress.Update(partial.size_bytes());
    if (settings.on_progress) settings.on_progress();
    return absl::OkStatus();
  };
  const absl::Status sent =
      client.Send({.url = url, .from_byte = partial.size_bytes(), .on_body = on_body}).status();
  if (absl::IsOutOfRange(sent)) TANDEM_RETURN_IF_ERROR(partial.Restart());
  TANDEM_RETURN_IF_ERROR(sent);
  if (partial.complete()) return absl::OkStatus();
  return absl::AbortedError(absl::StrCat("the server sent only ", partial.size_bytes(), " of ",
                                         content.size_bytes, " bytes"));
}

absl::Status Fetch(HttpClient& client, const Settings& settings, const Cancelled& cancelled,
                   const RepoFile& file, const std::string& url, PartialFile& partial) {
  Progress progress(file.path, partial.size_bytes(), file.content.size_bytes);
  Retries retries(settings, cancelled);
  uint64_t most_bytes = partial.size_bytes();
  while (!partial.complete()) {
    const absl::Status status = FetchRest(client, settings, url, file.content, partial, progress);
    if (partial.size_bytes() >= most_bytes + kProgressBytes) {
      most_bytes = partial.size_bytes();
      retries.Progressed();
    }
    if (status.ok()) continue;
    progress.EndLine();
    TANDEM_RETURN_IF_ERROR(retries.Wait(status, client.retry_after_s()));
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status CheckRoom(const RepoCache& cache, const std::vector<RepoFile>& files) {
  uint64_t needed_bytes = 0;
  for (const RepoFile& file : files) {
    if (cache.HasBlob(file.content)) continue;
    TANDEM_RETURN_IF_ERROR(cache.MakeFolders(file.content));
    needed_bytes += file.content.size_bytes -
                    std::min(file.content.size_bytes, cache.IncompleteBytes(file.content));
  }
  return CheckSpace(cache, needed_bytes);
}

absl::Status FetchFile(HttpClient& client, const Settings& settings, const Cancelled& cancelled,
                       const RepoCache& cache, const RepoFile& file, const std::string& url) {
  const Content& content = file.content;
  if (cache.HasBlob(content)) return absl::OkStatus();
  TANDEM_RETURN_IF_ERROR(cache.MakeFolders(content));
  uint64_t known_bytes = cache.IncompleteBytes(content);
  const auto bytes_of_other = [&] {
    const uint64_t bytes = cache.IncompleteBytes(content);
    if (std::exchange(known_bytes, bytes) != bytes && settings.on_progress) settings.on_progress();
    return bytes;
  };
  TANDEM_ASSIGN_OR_RETURN(
      const FileLock lock,
      FileLock::Acquire(cache.LockPath(content), bytes_of_other, settings.lock_timeout, cancelled));
  if (cache.HasBlob(content)) return absl::OkStatus();  // the lock's last holder has fetched it
  TANDEM_ASSIGN_OR_RETURN(PartialFile partial,
                          PartialFile::Open(cache.IncompletePath(content), content, cancelled));
  TANDEM_RETURN_IF_ERROR(CheckSpace(cache, content.size_bytes - partial.size_bytes()));
  // What an earlier run has left may be wrong, then one fetch from the start is worth it.
  for (bool resumed = partial.size_bytes() > 0;; resumed = false) {
    TANDEM_RETURN_IF_ERROR(Fetch(client, settings, cancelled, file, url, partial));
    if (partial.Matches()) return partial.MoveTo(cache.BlobPath(content));
    TANDEM_RETURN_IF_ERROR(partial.Restart());
    if (!resumed) break;
    TANDEM_LOG(kWarning) << file.path << ": what an earlier run left does not have the listed "
                         << "digest: fetching from the start";
  }
  return absl::DataLossError(
      absl::StrCat("what the server sent has another digest than its "
                   "listing says, ",
                   content.hex));
}

}  // namespace tandem::hub
