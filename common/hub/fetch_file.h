// Fetches one file of a repository into its cache.
#ifndef TANDEM_COMMON_HUB_FETCH_FILE_H_
#define TANDEM_COMMON_HUB_FETCH_FILE_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "common/hub/http_client.h"
#include "common/hub/repo_cache.h"
#include "common/hub/repo_file.h"
#include "common/hub/settings.h"

namespace tandem::hub {

// RESOURCE_EXHAUSTED if the disk has no room for what is not in `cache` yet of all `files`.
absl::Status CheckRoom(const RepoCache& cache, const std::vector<RepoFile>& files);

// Leaves `file`'s content as a blob in `cache`, checked by size and digest; returns at once if it
// is there. Continues what an earlier run has left, retries transient errors, waits for another
// process that fetches the same. Errors as of HttpClient::Send, and: DATA_LOSS if the server's
// bytes are not those of the listing; RESOURCE_EXHAUSTED if the disk is too small;
// FAILED_PRECONDITION if the repository has changed since it was listed.
absl::Status FetchFile(HttpClient& client, const Settings& settings, const Cancelled& cancelled,
                       const RepoCache& cache, const RepoFile& file, const std::string& url);

}  // namespace tandem::hub

#endif  // TANDEM_COMMON_HUB_FETCH_FILE_H_
