// TokenTable: the tokens that a server takes: a value, from the text of a file.
//
//   # name  scopes          token                  limits, each optional
//   alice   generate        sha256:9f86d0...0a08   rate=5 burst=10 concurrent=8
//   ops     generate,admin  q3v8WmZk7RfGz1Yb
//
// One token per line, fields between blanks, '#' begins a comment. A token is 16 to 4096 printable
// characters, or "sha256:" and its hash in hexadecimal, so that the file need not hold it. `rate`:
// requests per second; `burst`: how many may come at once (default: `rate`, at least 1);
// `concurrent`: requests at a time. Without a limit there is none.
#ifndef TANDEM_COORDINATOR_API_AUTH_TOKEN_TABLE_H_
#define TANDEM_COORDINATOR_API_AUTH_TOKEN_TABLE_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "coordinator/api/auth/scope.h"

namespace tandem::coordinator {

inline constexpr size_t kMaxTokens = 4096;
inline constexpr size_t kLeastTokenBytes = 16;

using TokenHash = std::array<uint8_t, 32>;  // SHA-256

TokenHash HashToken(std::string_view token);

// 0: no limit.
struct TokenLimits {
  double rate = 0;  // requests per second
  double burst = 0;
  uint32_t concurrent = 0;

  bool operator==(const TokenLimits&) const = default;
};

struct TokenEntry {
  std::string name{};
  TokenHash hash{};
  Scopes scopes{};
  TokenLimits limits{};
};

// Thread-safe: never changes.
class TokenTable {
 public:
  // INVALID_ARGUMENT with the line and what is wrong with it, never with a token.
  static absl::StatusOr<TokenTable> Parse(std::string_view text);
  // REQUIRES: names and hashes differ.
  explicit TokenTable(std::vector<TokenEntry> entries) : entries_(std::move(entries)) {}

  // Null if there is no such token. Takes the same time for every token of the same length: all
  // hashes are compared, each with all its bytes.
  const TokenEntry* Find(std::string_view token) const;
  const std::vector<TokenEntry>& entries() const { return entries_; }

 private:
  std::vector<TokenEntry> entries_;
};

}  // namespace tandem::coordinator

#endif  // TANDEM_COORDINATOR_API_AUTH_TOKEN_TABLE_H_
