#include "common/hub/tree.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "common/base/status.h"
#include "common/base/strings.h"
#include "common/gguf/quote.h"
#include "common/hub/retries.h"
#include "common/hub/url.h"

namespace tandem::hub {
namespace {

using Json = nlohmann::json;

constexpr size_t kMaxTreeBytes = 8 << 20;  // of all pages
constexpr int kMaxPages = 64;
constexpr int kPageStalls = 6;  // a page may take as long as so many stalls
constexpr uint64_t kMaxFileBytes = uint64_t{1} << 50;
constexpr size_t kSha256Digits = 64;
constexpr size_t kSha1Digits = 40;

// Empty if there is no such string.
std::string StringOf(const Json& object, const char* key) {
  const auto found = object.find(key);
  return found != object.end() && found->is_string() ? found->get<std::string>() : std::string();
}

std::optional<uint64_t> SizeOf(const Json& object) {
  const auto found = object.find("size");
  if (found == object.end() || !found->is_number_unsigned()) return std::nullopt;
  return found->get<uint64_t>();
}

bool IsHex(const std::string& text, size_t digits) {
  return text.size() == digits && std::all_of(text.begin(), text.end(), [](char c) {
           return absl::ascii_isdigit(c) || (c >= 'a' && c <= 'f');
         });
}

absl::StatusOr<RepoFile> ParseFile(const Json& entry, std::string path) {
  TANDEM_RETURN_IF_ERROR(CheckRepoPath(path));
  const auto lfs = entry.find("lfs");
  const bool large = lfs != entry.end() && lfs->is_object();
  const Json& described = large ? *lfs : entry;
  const std::optional<uint64_t> size = SizeOf(described);
  RepoFile file{.path = std::move(path),
                .content = {.kind = large ? DigestKind::kSha256 : DigestKind::kGitBlob,
                            .hex = StringOf(described, "oid"),
                            .size_bytes = size.value_or(0)}};
  if (!IsHex(file.content.hex, large ? kSha256Digits : kSha1Digits)) {
    return absl::InvalidArgumentError(absl::StrCat("the repository lists ", gguf::Quoted(file.path),
                                                   " without its ",
                                                   large ? "SHA-256" : "Git object id"));
  }
  if (!size.has_value() || *size == 0 || *size > kMaxFileBytes) {
    return absl::InvalidArgumentError(
        absl::StrCat("the repository lists ", gguf::Quoted(file.path), " without a possible size"));
  }
  return file;
}

// Appends a page's model files to `files`; the next page's URL.
absl::StatusOr<std::string> FetchPage(HttpClient& client, const std::string& url, Duration limit,
                                      size_t& bytes_left, std::vector<RepoFile>& files) {
  std::string json;
  TANDEM_ASSIGN_OR_RETURN(
      const HttpResponse response,
      client.Send(
          {.url = url, .limit = limit, .on_body = [&](const HttpResponse&, std::string_view piece) {
             if (json.size() + piece.size() > bytes_left) {
               return absl::InvalidArgumentError(absl::StrCat(
                   "the repository's listing is longer than ", kMaxTreeBytes, " bytes"));
             }
             json += piece;
             return absl::OkStatus();
           }}));
  bytes_left -= json.size();
  TANDEM_ASSIGN_OR_RETURN(std::vector<RepoFile> page, ParseTree(json));
  std::move(page.begin(), page.end(), std::back_inserter(files));
  return NextPage(response.link);
}

}  // namespace

absl::StatusOr<std::vector<RepoFile>> ParseTree(std::string_view json) {
  const Json tree = Json::parse(json, nullptr, /*allow_exceptions=*/false);
  if (!tree.is_array()) {
    return absl::InvalidArgumentError("the repository's listing is not a JSON array");
  }
  std::vector<RepoFile> files;
  for (const Json& entry : tree) {
    if (!entry.is_object()) {
      return absl::InvalidArgumentError("the repository's listing has an entry that is no object");
    }
    std::string path = StringOf(entry, "path");
    if (StringOf(entry, "type") != "file" || !IsModelFile(path)) continue;
    TANDEM_ASSIGN_OR_RETURN(RepoFile file, ParseFile(entry, std::move(path)));
    files.push_back(std::move(file));
  }
  return files;
}

std::string NextPage(std::string_view link) {
  for (const absl::string_view part : absl::StrSplit(Sv(link), ',')) {
    const size_t open = part.find('<');
    const size_t close = part.find('>');
    if (open == part.npos || close == part.npos || close < open) continue;
    if (!absl::StrContains(part.substr(close), "rel=\"next\"")) continue;
    return std::string(part.substr(open + 1, close - open - 1));
  }
  return {};
}

absl::StatusOr<std::vector<RepoFile>> FetchTree(HttpClient& client, const Settings& settings,
                                                const Cancelled& cancelled, const ModelName& name,
                                                bool unavailable_at_once) {
  std::vector<RepoFile> files;
  size_t bytes_left = kMaxTreeBytes;
  TANDEM_ASSIGN_OR_RETURN(const Url endpoint, Url::Parse(settings.endpoint));
  const Duration limit = settings.stall_timeout * kPageStalls;
  std::string url = absl::StrCat(settings.endpoint, "/api/models/", EscapePath(name.Repository()),
                                 "/tree/", EscapeSegment(name.revision), "?recursive=true");
  for (int page = 0; page < kMaxPages; ++page) {
    Retries retries(settings, cancelled);
    absl::StatusOr<std::string> next = FetchPage(client, url, limit, bytes_left, files);
    while (!next.ok()) {
      if (unavailable_at_once && absl::IsUnavailable(next.status())) return next.status();
      TANDEM_RETURN_IF_ERROR(retries.Wait(next.status(), client.retry_after_s()));
      next = FetchPage(client, url, limit, bytes_left, files);
    }
    if (next->empty()) return files;
    url = *std::move(next);
    TANDEM_ASSIGN_OR_RETURN(const Url next_page, Url::Parse(url));
    TANDEM_RETURN_IF_ERROR(CheckRedirect(endpoint, next_page));
  }
  return absl::InvalidArgumentError(
      absl::StrCat("the repository's listing has more than ", kMaxPages, " pages"));
}

}  // namespace tandem::hub
