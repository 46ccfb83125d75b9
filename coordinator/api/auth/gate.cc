#include "coordinator/api/auth/gate.h"

#include <openssl/crypto.h>

#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "common/base/status.h"
#include "common/base/strings.h"

namespace tandem::coordinator {
namespace {

constexpr std::string_view kScheme = "Bearer ";

// Empty if the header holds none.
std::string_view BearerToken(std::string_view authorization) {
  if (!absl::StartsWithIgnoreCase(Sv(authorization), Sv(kScheme))) return {};
  return authorization.substr(kScheme.size());
}

}  // namespace

Gate::Gate(std::unique_ptr<TokenStore> tokens, const std::string& gateway_token, const Clock& clock)
    : tokens_(std::move(tokens)),
      has_gateway_(!gateway_token.empty()),
      gateway_hash_(HashToken(gateway_token)),
      usage_(clock),
      log_(clock) {}

bool Gate::IsGateway(std::string_view token) const {
  const TokenHash hash = HashToken(token);
  return has_gateway_ && CRYPTO_memcmp(hash.data(), gateway_hash_.data(), hash.size()) == 0;
}

absl::Status Gate::Decide(std::string_view method, std::string_view authorization) {
  const Need need = NeedOf(method);
  if (tokens_ == nullptr || need == Need::kNothing) return absl::OkStatus();
  const std::string_view token = BearerToken(authorization);
  if (token.empty()) {
    return absl::UnauthenticatedError("a token is needed: 'authorization: Bearer TOKEN'");
  }
  const std::shared_ptr<const TokenTable> table = tokens_->Current();
  const TokenEntry* entry = table->Find(token);
  if (entry == nullptr && !IsGateway(token)) {
    return absl::UnauthenticatedError("the token is not known");
  }
  const Scopes scopes = entry == nullptr ? Scopes{.generate = true} : entry->scopes;
  if (scopes.Allow(need)) return absl::OkStatus();
  return absl::PermissionDeniedError(absl::StrCat("token '",
                                                  entry == nullptr ? kGatewayHeader : entry->name,
                                                  "' does not have the scope ", NameOf(need)));
}

absl::Status Gate::Check(std::string_view method, std::string_view authorization) {
  absl::Status decided = Decide(method, authorization);
  if (!decided.ok()) log_.Add(method, StdSv(decided.message()));
  return decided;
}

absl::Status Gate::CheckFromGateway(std::string_view method, std::string_view authorization,
                                    std::string_view gateway_header) {
  if (IsGateway(gateway_header)) return Check(method, authorization);
  absl::Status refused = absl::UnauthenticatedError("this port is of the server's gateway");
  log_.Add(method, StdSv(refused.message()));
  return refused;
}

std::string Gate::TokenNameOf(std::string_view authorization) const {
  if (tokens_ == nullptr) return "";
  const std::shared_ptr<const TokenTable> table = tokens_->Current();
  const TokenEntry* entry = table->Find(BearerToken(authorization));
  return entry == nullptr ? "" : entry->name;
}

absl::StatusOr<TokenUsage::Hold> Gate::Take(std::string_view authorization, Duration& retry_after,
                                            uint32_t count) {
  if (tokens_ == nullptr) return TokenUsage::Hold();
  const std::string_view token = BearerToken(authorization);
  const std::shared_ptr<const TokenTable> table = tokens_->Current();
  const TokenEntry* entry = table->Find(token);
  if (entry == nullptr && IsGateway(token)) return TokenUsage::Hold();
  if (entry == nullptr) return absl::UnauthenticatedError("the token is not known");
  absl::StatusOr<TokenUsage::Hold> hold = usage_.Take(*entry, retry_after, count);
  if (!hold.ok()) log_.Add("a request", StdSv(hold.status().message()));
  return hold;
}

}  // namespace tandem::coordinator
