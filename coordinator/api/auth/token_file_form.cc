// TokenTable::Parse.
#include <algorithm>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "common/base/status.h"
#include "common/base/strings.h"
#include "common/base/token_file.h"
#include "coordinator/api/auth/token_table.h"

namespace tandem::coordinator {
namespace {

constexpr size_t kMaxNameBytes = 64;
constexpr double kMaxLimit = 1e6;

absl::Status Bad(const std::string& why) { return absl::InvalidArgumentError(why); }

bool IsNameCharacter(char c) { return absl::ascii_isalnum(c) || c == '-' || c == '_' || c == '.'; }

absl::StatusOr<std::string> ParseName(absl::string_view field) {
  if (field.size() <= kMaxNameBytes && std::all_of(field.begin(), field.end(), IsNameCharacter)) {
    return std::string(field);
  }
  return Bad(absl::StrCat("a name has up to ", kMaxNameBytes, " letters, digits, '-', '_', '.'"));
}

absl::StatusOr<Scopes> ParseScopes(absl::string_view field) {
  Scopes scopes;
  for (const absl::string_view scope : absl::StrSplit(field, ',')) {
    if (scope == "generate") {
      scopes.generate = true;
    } else if (scope == "admin") {
      scopes.admin = true;
    } else {
      return Bad("scopes are generate, admin, or generate,admin");
    }
  }
  return scopes;
}

absl::StatusOr<TokenHash> ParseToken(absl::string_view field) {
  TokenHash hash{};
  if (absl::ConsumePrefix(&field, "sha256:")) {
    if (field.size() != 2 * hash.size() ||
        !std::all_of(field.begin(), field.end(), absl::ascii_isxdigit)) {
      return Bad("after sha256: there must be 64 hexadecimal digits");
    }
    const std::string bytes = absl::HexStringToBytes(field);
    std::copy(bytes.begin(), bytes.end(), hash.begin());
    return hash;
  }
  if (field.size() < kLeastTokenBytes || field.size() > kMaxTokenBytes) {
    return Bad(absl::StrCat("the token has ", field.size(), " characters, it needs ",
                            kLeastTokenBytes, " to ", kMaxTokenBytes));
  }
  if (!std::all_of(field.begin(), field.end(), absl::ascii_isgraph)) {
    return Bad("the token has characters that are not printable ASCII");
  }
  return HashToken(StdSv(field));
}

absl::Status ParseLimit(absl::string_view field, TokenLimits& limits) {
  const std::pair<absl::string_view, absl::string_view> parts =
      absl::StrSplit(field, absl::MaxSplits('=', 1));
  double value = 0;
  const bool positive = absl::SimpleAtod(parts.second, &value) && value > 0 && value <= kMaxLimit;
  if (parts.first == "rate" && positive) {
    limits.rate = value;
  } else if (parts.first == "burst" && positive && value >= 1) {
    limits.burst = value;
  } else if (parts.first == "concurrent" && positive && value == static_cast<uint32_t>(value)) {
    limits.concurrent = static_cast<uint32_t>(value);
  } else {
    return Bad("limits are rate=NUMBER, burst=NUMBER from 1, concurrent=INTEGER from 1, up to 1e6");
  }
  return absl::OkStatus();
}

absl::StatusOr<TokenLimits> ParseLimits(const std::vector<absl::string_view>& fields) {
  TokenLimits limits;
  for (size_t i = 3; i < fields.size(); ++i) {
    TANDEM_RETURN_IF_ERROR(ParseLimit(fields[i], limits));
  }
  if (limits.burst > 0 && limits.rate == 0) return Bad("burst needs rate");
  if (limits.burst == 0) limits.burst = std::max(1.0, limits.rate);
  return limits;
}

absl::StatusOr<TokenEntry> ParseEntry(const std::vector<absl::string_view>& fields) {
  if (fields.size() < 3) return Bad("a line has a name, scopes and a token");
  TokenEntry entry;
  TANDEM_ASSIGN_OR_RETURN(entry.name, ParseName(fields[0]));
  TANDEM_ASSIGN_OR_RETURN(entry.scopes, ParseScopes(fields[1]));
  TANDEM_ASSIGN_OR_RETURN(entry.hash, ParseToken(fields[2]));
  TANDEM_ASSIGN_OR_RETURN(entry.limits, ParseLimits(fields));
  return entry;
}

}  // namespace

absl::StatusOr<TokenTable> TokenTable::Parse(std::string_view text) {
  std::vector<TokenEntry> entries;
  std::set<std::string> names;
  std::set<TokenHash> hashes;
  int number = 0;
  for (const absl::string_view line : absl::StrSplit(Sv(text), '\n')) {
    ++number;
    const absl::string_view content = line.substr(0, line.find('#'));
    const std::vector<absl::string_view> fields =
        absl::StrSplit(content, absl::ByAnyChar(" \t\r"), absl::SkipEmpty());
    if (fields.empty()) continue;
    absl::StatusOr<TokenEntry> entry = ParseEntry(fields);
    if (entry.ok() && !names.insert(entry->name).second) entry = Bad("the name is there already");
    if (entry.ok() && !hashes.insert(entry->hash).second) entry = Bad("the token is there already");
    if (entry.ok() && entries.size() == kMaxTokens) {
      entry = Bad(absl::StrCat("there are more than ", kMaxTokens, " tokens"));
    }
    if (!entry.ok()) return Annotate(entry.status(), absl::StrCat("line ", number));
    entries.push_back(*std::move(entry));
  }
  if (entries.empty()) return Bad("there is no token");
  return TokenTable(std::move(entries));
}

}  // namespace tandem::coordinator
