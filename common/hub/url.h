// Url: the parts of an absolute http(s) URL that decide whether a secret may be sent.
#ifndef TANDEM_COMMON_HUB_URL_H_
#define TANDEM_COMMON_HUB_URL_H_

#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace tandem::hub {

struct Url {
  std::string text;  // all of it
  std::string scheme;
  std::string host;  // lower case
  std::string port;  // the scheme's if the text has none
  std::string path;

  // INVALID_ARGUMENT if it is not an absolute http or https URL, or has a user or password in it.
  static absl::StatusOr<Url> Parse(const std::string& text);

  bool SameOrigin(const Url& other) const;
  // For messages: without the query, which may contain a signature.
  std::string Shown() const;
};

// OK if a response from `from` may redirect to `to`: never from https to http.
absl::Status CheckRedirect(const Url& from, const Url& to);

// `text` with everything but unreserved characters and slashes as %XX: a path in a URL.
std::string EscapePath(std::string_view text);
// The same with slashes as %2F: one segment of a path.
std::string EscapeSegment(std::string_view text);

}  // namespace tandem::hub

#endif  // TANDEM_COMMON_HUB_URL_H_
