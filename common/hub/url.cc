#include "common/hub/url.h"

#include <curl/curl.h>

#include <memory>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_replace.h"

namespace tandem::hub {
namespace {

constexpr size_t kMaxUrlLength = 16384;

// Empty if the URL has no such part.
std::string Part(CURLU* url, CURLUPart part, unsigned flags = 0) {
  char* text = nullptr;
  if (curl_url_get(url, part, &text, flags) != CURLUE_OK) return {};
  std::string copy(text);
  curl_free(text);
  return copy;
}

}  // namespace

absl::StatusOr<Url> Url::Parse(const std::string& text) {
  const std::unique_ptr<CURLU, decltype(&curl_url_cleanup)> parsed(curl_url(), &curl_url_cleanup);
  if (text.size() > kMaxUrlLength || curl_url_set(parsed.get(), CURLUPART_URL, text.c_str(),
                                                  CURLU_NON_SUPPORT_SCHEME) != CURLUE_OK) {
    return absl::InvalidArgumentError("not an absolute http or https URL");
  }
  Url url;
  url.text = text;
  url.scheme = Part(parsed.get(), CURLUPART_SCHEME);
  url.host = absl::AsciiStrToLower(Part(parsed.get(), CURLUPART_HOST));
  url.port = Part(parsed.get(), CURLUPART_PORT, CURLU_DEFAULT_PORT);
  url.path = Part(parsed.get(), CURLUPART_PATH);
  if ((url.scheme != "http" && url.scheme != "https") || url.host.empty()) {
    return absl::InvalidArgumentError("not an absolute http or https URL");
  }
  if (!Part(parsed.get(), CURLUPART_USER).empty() ||
      !Part(parsed.get(), CURLUPART_PASSWORD).empty()) {
    return absl::InvalidArgumentError("a URL with a user or a password in it is not used");
  }
  return url;
}

bool Url::SameOrigin(const Url& other) const {
  return scheme == other.scheme && host == other.host && port == other.port;
}

std::string Url::Shown() const {
  const bool usual = port == (scheme == "https" ? "443" : "80");
  return absl::StrCat(scheme, "://", host, usual ? "" : ":", usual ? "" : port, path);
}

absl::Status CheckRedirect(const Url& from, const Url& to) {
  if (from.scheme != "https" || to.scheme == "https") return absl::OkStatus();
  return absl::FailedPreconditionError(
      absl::StrCat("refused a redirect from https to ", to.Shown()));
}

std::string EscapePath(std::string_view text) {
  std::string escaped;
  for (const char c : text) {
    if (absl::ascii_isalnum(c) || c == '-' || c == '.' || c == '_' || c == '~' || c == '/') {
      escaped += c;
    } else {
      absl::StrAppendFormat(&escaped, "%%%02X", static_cast<unsigned char>(c));
    }
  }
  return escaped;
}

std::string EscapeSegment(std::string_view text) {
  return absl::StrReplaceAll(EscapePath(text), {{"/", "%2F"}});
}

}  // namespace tandem::hub
