#include "common/hub/http_status.h"

#include "absl/strings/str_cat.h"

namespace tandem::hub {

absl::Status StatusOfHttp(int status, bool has_token) {
  if (status < 400) return absl::OkStatus();
  const std::string text = absl::StrCat("HTTP status ", status);
  switch (status) {
    case 401:
      // A hub also says this of repositories that do not exist.
      return absl::UnauthenticatedError(absl::StrCat(
          text, has_token ? ": there is no such repository, or HF_TOKEN may not read it"
                          : ": there is no such repository, or it needs a token in HF_TOKEN"));
    case 403:
      return absl::PermissionDeniedError(absl::StrCat(
          text, has_token ? ": HF_TOKEN may not read this; its owner may have to grant access first"
                          : ": this needs a token in HF_TOKEN"));
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
