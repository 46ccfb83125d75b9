// Converts untrusted GenerateParams to a checked engine request.
#ifndef TANDEM_COORDINATOR_API_REQUEST_BUILDER_H_
#define TANDEM_COORDINATOR_API_REQUEST_BUILDER_H_

#include <cstddef>
#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "common/base/limits.h"
#include "coordinator/api/generate_params.h"
#include "coordinator/api/serving_model.h"
#include "coordinator/engine/request.h"

namespace tandem::coordinator {

// Besides kMaxTopLogprobs and kMaxChoices, which the client has in common.
inline constexpr size_t kMaxStopStrings = 64;
inline constexpr size_t kMaxStopTokenIds = 256;
inline constexpr size_t kMaxRequestIdBytes = 256;
inline constexpr size_t kMaxCacheSaltBytes = 256;

// A request with these, and an id that is random if `id` is empty. INVALID_ARGUMENT naming the
// field. Thread-safe.
absl::StatusOr<Request> NamedRequest(std::string id, std::string cache_salt, int32_t priority);
// Gives the request the adapter of that name; an empty name is the model alone. NOT_FOUND with the
// names that there are.
absl::Status SetAdapter(const std::string& name, const ServingModel& model, Request& request);
// The id of request number `index` of a call whose first one has the id `first`.
std::string NumberedId(const std::string& first, uint32_t index);

// Tokenizes, checks and fills in the defaults; id and seed are random if not given. The engine's
// Add checks its limits (token ids, lengths). INVALID_ARGUMENT naming field, found and allowed
// value. The caller sets the stream. Thread-safe.
absl::StatusOr<Request> BuildRequest(GenerateParams params, const ServingModel& model);

// The request for continuation number `index` of the prompt of `first`, which is number 0: it
// differs in id and seed, and gives no log-probabilities of the prompt.
Request Continuation(const Request& first, uint32_t index);

}  // namespace tandem::coordinator

#endif  // TANDEM_COORDINATOR_API_REQUEST_BUILDER_H_
