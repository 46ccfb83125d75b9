// From a GenerateRequest, which anyone may send, to a checked engine request.
#ifndef TANDEM_COORDINATOR_API_REQUEST_BUILDER_H_
#define TANDEM_COORDINATOR_API_REQUEST_BUILDER_H_

#include "absl/status/statusor.h"
#include "coordinator/api/serving_model.h"
#include "coordinator/engine/request.h"
#include "proto/tandem/v1/generation.pb.h"

namespace tandem::coordinator {

inline constexpr int kMaxLogprobs = 20;
inline constexpr int kMaxStopStrings = 64;
inline constexpr int kMaxStopTokenIds = 256;
inline constexpr size_t kMaxRequestIdBytes = 256;

// Tokenizes, checks every field and fills in the defaults; id and seed are drawn where they are not
// given. INVALID_ARGUMENT naming field, found and allowed value. The stream is the caller's to set.
// Thread-safe.
absl::StatusOr<Request> BuildRequest(const v1::GenerateRequest& proto, const ServingModel& model);

}  // namespace tandem::coordinator

#endif  // TANDEM_COORDINATOR_API_REQUEST_BUILDER_H_
