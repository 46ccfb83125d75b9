// HTTP status codes as absl::Status.
#ifndef TANDEM_COMMON_HUB_HTTP_STATUS_H_
#define TANDEM_COMMON_HUB_HTTP_STATUS_H_

#include "absl/status/status.h"

namespace tandem::hub {

// OK below 400; the codes of errors are those of HttpClient::Send. The hub's own refusals, unlike
// those of other hosts, depend on the token; `has_token`: the request carried one.
absl::Status StatusOfHttp(int status, bool from_hub, bool has_token);

}  // namespace tandem::hub

#endif  // TANDEM_COMMON_HUB_HTTP_STATUS_H_
