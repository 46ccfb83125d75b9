#include "coordinator/api/grpc/turn.h"

#include <chrono>
#include <string_view>
#include <utility>

#include "coordinator/api/grpc/retry_hint.h"
#include "coordinator/api/grpc/wire.h"

namespace tandem::coordinator {

namespace {

std::string_view Authorization(const grpc::CallbackServerContext& context) {
  const auto found = context.client_metadata().find(kAuthorization);
  if (found == context.client_metadata().end()) return {};
  return {found->second.data(), found->second.size()};
}

}  // namespace

std::string CallerOf(const Gate* gate, const grpc::CallbackServerContext& context) {
  return gate == nullptr ? "" : gate->TokenNameOf(Authorization(context));
}

grpc::Status TakeTurn(Gate* gate, grpc::CallbackServerContext& context, TokenUsage::Hold& turn,
                      uint32_t count) {
  if (gate == nullptr) return grpc::Status::OK;
  Duration retry_after{};
  absl::StatusOr<TokenUsage::Hold> taken = gate->Take(Authorization(context), retry_after, count);
  if (!taken.ok() && !absl::IsResourceExhausted(taken.status())) return ToGrpc(taken.status());
  if (!taken.ok()) {
    return Refusal(context, taken.status(),
                   std::chrono::ceil<std::chrono::milliseconds>(retry_after));
  }
  turn = *std::move(taken);
  return grpc::Status::OK;
}

}  // namespace tandem::coordinator
