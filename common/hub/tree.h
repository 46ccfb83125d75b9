// A repository's listing: the hub's tree endpoint.
#ifndef TANDEM_COMMON_HUB_TREE_H_
#define TANDEM_COMMON_HUB_TREE_H_

#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "common/hub/http_client.h"
#include "common/hub/model_name.h"
#include "common/hub/repo_file.h"
#include "common/hub/settings.h"

namespace tandem::hub {

// The model files in a page of a listing, which is JSON: an array of objects with type, path, size
// and oid, of large files also lfs: {oid, size}. INVALID_ARGUMENT if it is not, or lists a model
// file with an unsafe path, no digest or an impossible size.
absl::StatusOr<std::vector<RepoFile>> ParseTree(std::string_view json);

// The URL of rel="next" in a Link header; empty if there is none.
std::string NextPage(std::string_view link);

// The model files of the name's revision, in the listing's order. Errors as of HttpClient::Send and
// ParseTree; transient ones only after retries, but with `unavailable_at_once` not UNAVAILABLE.
absl::StatusOr<std::vector<RepoFile>> FetchTree(HttpClient& client, const Settings& settings,
                                                const Cancelled& cancelled, const ModelName& name,
                                                bool unavailable_at_once);

}  // namespace tandem::hub

#endif  // TANDEM_COMMON_HUB_TREE_H_
