// HttpClient: GET and HEAD requests to a hub and to the hosts that it redirects to; the only user
// of libcurl's transfers.
//
// Redirects are followed here, not by libcurl: the token goes to the endpoint's origin only, and
// only http(s) is spoken. Every wait has a deadline (connecting; a stall). Errors name host and
// path of the request that failed, never its query or the token. One thread.
#ifndef TANDEM_COMMON_HUB_HTTP_CLIENT_H_
#define TANDEM_COMMON_HUB_HTTP_CLIENT_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/hub/settings.h"

namespace tandem::hub {

struct HttpResponse {
  int status = 0;
  std::optional<uint64_t> content_length{};
  std::string content_range{};
  uint32_t retry_after_s = 0;
  // Of the hub, before it redirected to another host; empty if absent.
  std::string repo_commit{};
  std::string linked_etag{};
  std::string link{};
};

struct HttpRequest {
  std::string url{};
  // HEAD; ends at the first redirect to another origin, which is then the response.
  bool head = false;
  uint64_t from_byte = 0;            // above 0: a range request for the rest
  Duration limit = Duration::max();  // of the whole transfer
  // The body of a 2xx response in pieces; an error ends the transfer.
  std::function<absl::Status(const HttpResponse&, std::string_view)> on_body{};
};

class HttpClient {
 public:
  HttpClient(const Settings& settings, Cancelled cancelled);
  ~HttpClient();
  HttpClient(const HttpClient&) = delete;
  HttpClient& operator=(const HttpClient&) = delete;

  // The response, whose body was passed to on_body. UNAVAILABLE: no connection; ABORTED: the
  // connection broke, or 408, 429 or 5xx; DEADLINE_EXCEEDED: a stall or the limit; UNAUTHENTICATED:
  // 401; PERMISSION_DENIED: 403; NOT_FOUND: 404; UNIMPLEMENTED: 405, 501; OUT_OF_RANGE: 416;
  // FAILED_PRECONDITION: other statuses, bad redirects and certificates; CANCELLED.
  absl::StatusOr<HttpResponse> Send(const HttpRequest& request);
  // What the last response asked to wait before the next request; 0: nothing.
  uint32_t retry_after_s() const { return retry_after_s_; }

 private:
  struct Transfer;

  // One request without redirects. The next URL, or empty.
  absl::StatusOr<std::string> SendOnce(Transfer& transfer);

  Settings settings_;
  Cancelled cancelled_;
  struct Handle;
  std::unique_ptr<Handle> handle_;
  uint32_t retry_after_s_ = 0;
};

}  // namespace tandem::hub

#endif  // TANDEM_COMMON_HUB_HTTP_CLIENT_H_
