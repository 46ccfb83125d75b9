#include "coordinator/api/grpc/turn.h"

#include <chrono>
#include <string_view>
#include <utility>

#include "coordinator/api/grpc/retry_hint.h"
#include "coordinator/api/grpc/wire.h"

namespace tandem::coordinator {

grpc::Status TakeTurn(Gate* gate, grpc::CallbackServerContext& context, TokenUsage::Hold& turn) {
  if (gate == nullptr) return grpc::Status::OK;
  const auto found = context.client_metadata().find(kAuthorization);
  const auto value = found == context.client_metadata().end() ? grpc::string_ref() : found->second;
  Duration retry_after{};
  absl::StatusOr<TokenUsage::Hold> taken =
      gate->Take(std::string_view(value.data(), value.size()), retry_after);
  if (!taken.ok() && !absl::IsResourceExhausted(taken.status())) return ToGrpc(taken.status());
  if (!taken.ok()) {
    return Refusal(context, taken.status(),
                   std::chrono::ceil<std::chrono::milliseconds>(retry_after));
  }
  turn = *std::move(taken);
  return grpc::Status::OK;
}

}  // namespace tandem::coordinator
