#include "common/hub/http_status.h"

#include <string>

#include "absl/strings/str_cat.h"

namespace tandem::hub {

namespace {

// Why the hub answers 401 or 403.
std::string Refusal(int status, bool has_token) {
  if (status == 401) {  // also of repositories that do not exist
    return has_token ? ": there is no such repository, or HF_TOKEN may not read it"
                     : ": there is no such repository, or it needs a token in HF_TOKEN";
  }
  return has_token ? ": HF_TOKEN may not read this; its owner may have to grant access first"
                   : ": this needs a token in HF_TOKEN";
}

}  // namespace

absl::Status StatusOfHttp(int status, bool from_hub, bool has_token) {
  if (status < 400) return absl::OkStatus();
  const std::string text = absl::StrCat("HTTP status ", status);
  switch (status) {
    case 401:
      return absl::UnauthenticatedError(
          absl::StrCat(text, from_hub ? Refusal(status, has_token) : ""));
    case 403:
      return absl::PermissionDeniedError(
          absl::StrCat(text, from_hub ? Refusal(status, has_token) : ""));
    case 404:
      return absl::NotFoundError(absl::StrCat(text, ": not found"));
    case 405:
    case 501:
      return absl::UnimplementedError(text);
    case 416:
      return absl::OutOfRangeError(text);
    case 429:
      return absl::AbortedError(absl::StrCat(text, ": too many requests"));
    default:
      if (status == 408 || status >= 500) return absl::AbortedError(text);
      return absl::FailedPreconditionError(text);
  }
}

}  // namespace tandem::hub
