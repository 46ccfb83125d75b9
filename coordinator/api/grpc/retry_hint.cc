#include "coordinator/api/grpc/retry_hint.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "coordinator/api/grpc/wire.h"
#include "proto/google/rpc/error_details.pb.h"
#include "proto/google/rpc/status.pb.h"

namespace tandem::coordinator {
namespace {

constexpr char kPushback[] = "grpc-retry-pushback-ms";
// A place in the queue is free again within some steps.
constexpr auto kFullDelay = std::chrono::milliseconds(1000);
// Another server may take it at once; this one, when it is loaded or started again.
constexpr auto kAwayDelay = std::chrono::milliseconds(200);

}  // namespace

grpc::Status Refusal(grpc::CallbackServerContext& context, const absl::Status& status) {
  if (!absl::IsResourceExhausted(status) && !absl::IsUnavailable(status)) return ToGrpc(status);
  return Refusal(context, status, absl::IsUnavailable(status) ? kAwayDelay : kFullDelay);
}

grpc::Status Refusal(grpc::CallbackServerContext& context, const absl::Status& status,
                     std::chrono::milliseconds delay) {
  context.AddTrailingMetadata(kPushback, absl::StrCat(delay.count()));
  google::rpc::RetryInfo retry;
  retry.mutable_retry_delay()->set_seconds(delay.count() / 1000);
  retry.mutable_retry_delay()->set_nanos(static_cast<int32_t>(delay.count() % 1000 * 1'000'000));
  google::rpc::Status details;
  details.set_code(static_cast<int32_t>(status.code()));
  details.set_message(std::string(status.message()));
  details.add_details()->PackFrom(retry);
  return {static_cast<grpc::StatusCode>(status.code()), std::string(status.message()),
          details.SerializeAsString()};
}

}  // namespace tandem::coordinator
