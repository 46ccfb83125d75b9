// Gate: whether a call may go on, by its bearer token. Every call of a port passes it before a
// service sees it and before its message is read (common/rpc/server_credentials.h).
#ifndef TANDEM_COORDINATOR_API_AUTH_GATE_H_
#define TANDEM_COORDINATOR_API_AUTH_GATE_H_

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "coordinator/api/auth/token_store.h"
#include "coordinator/api/auth/token_usage.h"
#include "coordinator/listener/refusal_log.h"

namespace tandem::coordinator {

// The header of a call: "Bearer TOKEN".
inline constexpr char kAuthorization[] = "authorization";
// The header by which our own gateway shows itself on the port that only it may use.
inline constexpr char kGatewayHeader[] = "tandem-gateway";

// Thread-safe.
class Gate {
 public:
  // `tokens` may be null: every call may go on. `gateway_token` has the scope generate, and is none
  // of a user's; empty: there is none.
  Gate(std::unique_ptr<TokenStore> tokens, const std::string& gateway_token,
       const Clock& clock = Clock::System());

  // `authorization`: the header's value, empty without one. UNAUTHENTICATED without a token that is
  // known, PERMISSION_DENIED with one that lacks the scope.
  absl::Status Check(std::string_view method, std::string_view authorization);
  // The same for a call on the port of our own gateway, which must show its token in
  // kGatewayHeader.
  absl::Status CheckFromGateway(std::string_view method, std::string_view authorization,
                                std::string_view gateway_header);

  // Counts a call that has passed, of `count` requests, against its token's limits, until the hold
  // ends. RESOURCE_EXHAUSTED and when to come again if they are reached; INVALID_ARGUMENT if they
  // never allow so many.
  absl::StatusOr<TokenUsage::Hold> Take(std::string_view authorization, Duration& retry_after,
                                        uint32_t count = 1);
  // The name of a call's token; empty if it has none that is known, or none is needed.
  std::string TokenNameOf(std::string_view authorization) const;

 private:
  absl::Status Decide(std::string_view method, std::string_view authorization);
  bool IsGateway(std::string_view token) const;

  const std::unique_ptr<TokenStore> tokens_;
  const bool has_gateway_;
  const TokenHash gateway_hash_;
  TokenUsage usage_;
  RefusalLog log_;
};

}  // namespace tandem::coordinator

#endif  // TANDEM_COORDINATOR_API_AUTH_GATE_H_
