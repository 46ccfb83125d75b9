#include "common/hub/http_client.h"

#include <curl/curl.h>

#include <algorithm>
#include <array>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "common/base/check.h"
#include "common/base/status.h"
#include "common/base/strings.h"
#include "common/base/version.h"
#include "common/hub/http_status.h"
#include "common/hub/url.h"

namespace tandem::hub {
namespace {

constexpr int kMaxRedirects = 8;
constexpr size_t kMaxHeaderValue = 8192;
// Of a response that is not used: a redirect's or an error's text.
constexpr size_t kMaxIgnoredBytes = 65536;
// Less within the time limit of a stall is a stall.
constexpr curl_off_t kLeastBytes = 1024;
constexpr long kBufferBytes = 512 * 1024;

struct FreeList {
  void operator()(curl_slist* list) const { curl_slist_free_all(list); }
};
using HeaderList = std::unique_ptr<curl_slist, FreeList>;

void Append(HeaderList& list, const std::string& line) {
  curl_slist* first = curl_slist_append(list.get(), line.c_str());
  TANDEM_CHECK(first != nullptr);
  if (list == nullptr) list.reset(first);
}

long Milliseconds(Duration duration) {
  return static_cast<long>(std::chrono::ceil<std::chrono::milliseconds>(duration).count());
}

void SetHeader(const std::string& name, const std::string& value, bool from_hub,
               HttpResponse& response) {
  if (name == "content-length") {
    uint64_t length = 0;
    if (absl::SimpleAtoi(value, &length)) response.content_length = length;
  } else if (name == "content-range") {
    response.content_range = value;
  } else if (name == "retry-after") {
    uint32_t seconds = 0;  // a date instead of a number is ignored
    if (absl::SimpleAtoi(value, &seconds)) response.retry_after_s = seconds;
  } else if (from_hub && name == "x-repo-commit") {
    response.repo_commit = value;
  } else if (from_hub && name == "x-linked-etag") {
    response.linked_etag = value;
  } else if (from_hub && name == "link") {
    response.link = value;
  }
}

}  // namespace

struct HttpClient::Handle {
  CURL* curl = nullptr;
  ~Handle() { curl_easy_cleanup(curl); }
};

// A request on its way, over its redirects.
struct HttpClient::Transfer {
  const HttpRequest& request;
  const Settings& settings;
  const Cancelled& cancelled;
  CURL* curl;
  Url hub{};
  Url url{};
  HttpResponse response{};
  absl::Status ended{};  // why the body's consumer, or this program, ended the transfer
  uint64_t ignored_bytes = 0;
  curl_off_t seen_bytes = 0;
  Deadline stalled = Deadline::After({});
  Deadline limit = Deadline::After({});

  bool from_hub() const { return url.SameOrigin(hub); }
  void Begin() {
    HttpResponse kept;
    kept.repo_commit = std::move(response.repo_commit);
    kept.linked_etag = std::move(response.linked_etag);
    response = std::move(kept);
    ignored_bytes = 0;
    seen_bytes = 0;
    stalled = Deadline::After(settings.connect_timeout + settings.stall_timeout);
  }

  static size_t OnHeader(char* data, size_t, size_t size, void* self);
  static size_t OnBody(char* data, size_t, size_t size, void* self);
  static int OnProgress(void* self, curl_off_t, curl_off_t received, curl_off_t, curl_off_t);
};

size_t HttpClient::Transfer::OnHeader(char* data, size_t, size_t size, void* self) {
  auto& transfer = *static_cast<Transfer*>(self);
  const std::string_view line(data, size);
  if (line.starts_with("HTTP/")) {  // a new response: the last one was interim
    transfer.response.content_length.reset();
    transfer.response.content_range.clear();
    long status = 0;
    curl_easy_getinfo(transfer.curl, CURLINFO_RESPONSE_CODE, &status);
    transfer.response.status = static_cast<int>(status);
    return size;
  }
  const size_t colon = line.find(':');
  if (colon == line.npos || size > kMaxHeaderValue) return size;
  SetHeader(absl::AsciiStrToLower(Sv(line.substr(0, colon))),
            std::string(absl::StripAsciiWhitespace(Sv(line.substr(colon + 1)))),
            transfer.from_hub(), transfer.response);
  return size;
}

size_t HttpClient::Transfer::OnBody(char* data, size_t, size_t size, void* self) {
  auto& transfer = *static_cast<Transfer*>(self);
  const int status = transfer.response.status;
  if (status < 200 || status >= 300) {
    transfer.ignored_bytes += size;
    return transfer.ignored_bytes > kMaxIgnoredBytes ? 0 : size;
  }
  if (transfer.request.on_body == nullptr) return size;
  transfer.ended = transfer.request.on_body(transfer.response, {data, size});
  return transfer.ended.ok() ? size : 0;
}

int HttpClient::Transfer::OnProgress(void* self, curl_off_t, curl_off_t received, curl_off_t,
                                     curl_off_t) {
  auto& transfer = *static_cast<Transfer*>(self);
  if (transfer.cancelled()) {
    transfer.ended = absl::CancelledError("stopped");
  } else if (transfer.limit.Passed()) {
    transfer.ended = absl::DeadlineExceededError("the answer takes too long");
  } else if (received >= transfer.seen_bytes + kLeastBytes) {
    transfer.seen_bytes = received;
    transfer.stalled = Deadline::After(transfer.settings.stall_timeout);
  } else if (transfer.stalled.Passed()) {
    transfer.ended = absl::DeadlineExceededError(
        absl::StrCat("fewer than ", kLeastBytes, " bytes were received in ",
                     Milliseconds(transfer.settings.stall_timeout) / 1000, " s"));
  }
  return transfer.ended.ok() ? 0 : 1;
}

HttpClient::HttpClient(const Settings& settings, Cancelled cancelled)
    : settings_(settings), cancelled_(std::move(cancelled)), handle_(std::make_unique<Handle>()) {
  static const CURLcode initialized = curl_global_init(CURL_GLOBAL_DEFAULT);
  TANDEM_CHECK(initialized == CURLE_OK);
  handle_->curl = curl_easy_init();
  TANDEM_CHECK(handle_->curl != nullptr);
}

HttpClient::~HttpClient() = default;

namespace {

// What libcurl's result means; OK when a response arrived.
absl::Status StatusOfCurl(CURLcode code, const char* detail) {
  const std::string text = absl::StrCat(
      absl::StripAsciiWhitespace(detail[0] != '\0' ? detail : curl_easy_strerror(code)));
  switch (code) {
    case CURLE_OK:
      return absl::OkStatus();
    case CURLE_COULDNT_RESOLVE_HOST:
    case CURLE_COULDNT_RESOLVE_PROXY:
    case CURLE_COULDNT_CONNECT:
    case CURLE_OPERATION_TIMEDOUT:  // only connecting has a time limit in libcurl
      return absl::UnavailableError(text);
    case CURLE_PEER_FAILED_VERIFICATION:
    case CURLE_SSL_CACERT_BADFILE:
    case CURLE_SSL_CERTPROBLEM:
      return absl::FailedPreconditionError(text);
    default:
      return absl::AbortedError(text);
  }
}

}  // namespace

absl::StatusOr<std::string> HttpClient::SendOnce(Transfer& transfer) {
  CURL* curl = handle_->curl;
  std::array<char, CURL_ERROR_SIZE> detail{};
  HeaderList headers;
  Append(headers, "Accept-Encoding: identity");
  const bool has_token = !settings_.token.empty() && transfer.from_hub();
  if (has_token) Append(headers, absl::StrCat("Authorization: Bearer ", settings_.token));
  const std::string agent = absl::StrCat("tandem/", BuildVersion());
  const std::string range = absl::StrCat(transfer.request.from_byte, "-");

  transfer.Begin();
  curl_easy_reset(curl);  // keeps the connection
  curl_easy_setopt(curl, CURLOPT_URL, transfer.url.text.c_str());
  curl_easy_setopt(curl, CURLOPT_PROTOCOLS_STR, "http,https");
  curl_easy_setopt(curl, CURLOPT_NOSIGNAL, 1L);
  curl_easy_setopt(curl, CURLOPT_SUPPRESS_CONNECT_HEADERS, 1L);
  curl_easy_setopt(curl, CURLOPT_USERAGENT, agent.c_str());
  curl_easy_setopt(curl, CURLOPT_HTTPHEADER, headers.get());
  curl_easy_setopt(curl, CURLOPT_CONNECTTIMEOUT_MS, Milliseconds(settings_.connect_timeout));
  curl_easy_setopt(curl, CURLOPT_BUFFERSIZE, kBufferBytes);
  curl_easy_setopt(curl, CURLOPT_ERRORBUFFER, detail.data());
  curl_easy_setopt(curl, CURLOPT_NOBODY, transfer.request.head ? 1L : 0L);
  if (transfer.request.from_byte > 0) curl_easy_setopt(curl, CURLOPT_RANGE, range.c_str());
  curl_easy_setopt(curl, CURLOPT_HEADERFUNCTION, &Transfer::OnHeader);
  curl_easy_setopt(curl, CURLOPT_HEADERDATA, &transfer);
  curl_easy_setopt(curl, CURLOPT_WRITEFUNCTION, &Transfer::OnBody);
  curl_easy_setopt(curl, CURLOPT_WRITEDATA, &transfer);
  curl_easy_setopt(curl, CURLOPT_NOPROGRESS, 0L);
  curl_easy_setopt(curl, CURLOPT_XFERINFOFUNCTION, &Transfer::OnProgress);
  curl_easy_setopt(curl, CURLOPT_XFERINFODATA, &transfer);

  const CURLcode code = curl_easy_perform(curl);
  retry_after_s_ = transfer.response.retry_after_s;
  TANDEM_RETURN_IF_ERROR(transfer.ended);
  if (code != CURLE_WRITE_ERROR) {  // else enough of an error's text was received
    TANDEM_RETURN_IF_ERROR(StatusOfCurl(code, detail.data()));
  }
  TANDEM_RETURN_IF_ERROR(StatusOfHttp(transfer.response.status, transfer.from_hub(), has_token));
  char* next = nullptr;
  curl_easy_getinfo(curl, CURLINFO_REDIRECT_URL, &next);
  return std::string(next == nullptr ? "" : next);
}

absl::StatusOr<HttpResponse> HttpClient::Send(const HttpRequest& request) {
  Transfer transfer{
      .request = request, .settings = settings_, .cancelled = cancelled_, .curl = handle_->curl};
  TANDEM_ASSIGN_OR_RETURN(transfer.hub, Url::Parse(settings_.endpoint));
  TANDEM_ASSIGN_OR_RETURN(transfer.url, Url::Parse(request.url));
  transfer.limit = request.limit == Duration::max() ? Deadline::At(TimePoint::max())
                                                    : Deadline::After(request.limit);
  for (int redirects = 0; redirects <= kMaxRedirects; ++redirects) {
    const absl::StatusOr<std::string> next = SendOnce(transfer);
    if (!next.ok()) return Annotate(next.status(), transfer.url.Shown());
    if (next->empty() && transfer.response.status < 300) return std::move(transfer.response);
    if (next->empty()) {
      return absl::FailedPreconditionError(absl::StrCat(
          transfer.url.Shown(), ": HTTP status ", transfer.response.status, " without a location"));
    }
    absl::StatusOr<Url> to = Url::Parse(*next);
    absl::Status allowed = to.ok() ? CheckRedirect(transfer.url, *to) : to.status();
    if (!allowed.ok()) {
      return absl::FailedPreconditionError(
          absl::StrCat(transfer.url.Shown(), ": redirect: ", allowed.message()));
    }
    if (request.head && !to->SameOrigin(transfer.hub)) return std::move(transfer.response);
    transfer.url = *std::move(to);
  }
  return absl::FailedPreconditionError(
      absl::StrCat(Sv(request.url), ": more than ", kMaxRedirects, " redirects"));
}

}  // namespace tandem::hub
