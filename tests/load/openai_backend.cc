#include "tests/load/openai_backend.h"

#include <curl/curl.h>

#include <algorithm>
#include <chrono>
#include <string_view>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "common/base/address.h"
#include "common/base/check.h"
#include "common/base/status.h"
#include "tests/load/completion_event.h"
#include "tests/load/sse_parser.h"

namespace tandem::load {
namespace {

constexpr long kHttpOk = 200;
constexpr size_t kMaxErrorBytes = 500;  // of an error's body, in its message
constexpr size_t kMaxBodyBytes = 1 << 22;
constexpr int kPollMillis = 20;  // at most this late resumes a slow reader
constexpr size_t kBytesPerToken = 4;
constexpr uint32_t kDefaultVocabSize = 8192;

long Millis(Duration duration) {
  return std::max<long>(
      static_cast<long>(std::chrono::ceil<std::chrono::milliseconds>(duration).count()), 1);
}

std::string BaseUrl(const client::Connection& connection) {
  if (absl::StrContains(connection.server, "://")) return connection.server;
  return absl::StrCat(connection.has_tls() ? "https://" : "http://", connection.server);
}

absl::Status FromCurl(CURLcode code, const std::string& server, const char* detail) {
  const std::string text =
      absl::StrCat(server, ": ", *detail != '\0' ? detail : curl_easy_strerror(code));
  switch (code) {
    case CURLE_OK:
      return absl::OkStatus();
    case CURLE_OPERATION_TIMEDOUT:
      return absl::DeadlineExceededError(text);
    case CURLE_UNSUPPORTED_PROTOCOL:
    case CURLE_URL_MALFORMAT:
      return absl::InvalidArgumentError(text);
    default:
      return absl::UnavailableError(text);
  }
}

absl::Status FromHttp(long http_status, const std::string& server, const std::string& body) {
  const std::string text =
      absl::StrCat(server, ": HTTP ", http_status, ": ", body.substr(0, kMaxErrorBytes));
  if (http_status == 429) return absl::ResourceExhaustedError(text);
  if (http_status == 503) return absl::UnavailableError(text);
  return absl::InternalError(text);
}

size_t AppendBody(char* bytes, size_t, size_t count, void* body) {
  auto& text = *static_cast<std::string*>(body);
  if (text.size() + count > kMaxBodyBytes) return 0;
  text.append(bytes, count);
  return count;
}

struct EasyCleanup {
  void operator()(CURL* easy) const { curl_easy_cleanup(easy); }
};
struct ListCleanup {
  void operator()(curl_slist* list) const { curl_slist_free_all(list); }
};
using Easy = std::unique_ptr<CURL, EasyCleanup>;
using Headers = std::unique_ptr<curl_slist, ListCleanup>;

Headers MakeHeaders(const std::string& api_key) {
  curl_slist* list = curl_slist_append(nullptr, "Content-Type: application/json");
  if (!api_key.empty()) {
    list = curl_slist_append(list, absl::StrCat("Authorization: Bearer ", api_key).c_str());
  }
  return Headers(list);
}

// What every transfer has.
Easy MakeEasy(const client::Connection& connection, const std::string& url, const Headers& headers,
              Duration timeout) {
  Easy easy(curl_easy_init());
  TANDEM_CHECK(easy != nullptr);
  curl_easy_setopt(easy.get(), CURLOPT_URL, url.c_str());
  curl_easy_setopt(easy.get(), CURLOPT_PROTOCOLS_STR, "http,https");
  curl_easy_setopt(easy.get(), CURLOPT_HTTPHEADER, headers.get());
  curl_easy_setopt(easy.get(), CURLOPT_TIMEOUT_MS, Millis(timeout));
  curl_easy_setopt(easy.get(), CURLOPT_NOSIGNAL, 1L);
  const auto set_file = [&](CURLoption option, const std::string& path) {
    if (!path.empty()) curl_easy_setopt(easy.get(), option, path.c_str());
  };
  set_file(CURLOPT_CAINFO, connection.tls_ca);
  set_file(CURLOPT_SSLCERT, connection.tls_client_cert);
  set_file(CURLOPT_SSLKEY, connection.tls_client_key);
  // A server on this machine is never behind a proxy.
  curl_easy_setopt(easy.get(), CURLOPT_NOPROXY, "localhost,127.0.0.1,::1");
  return easy;
}

}  // namespace

// One request. Of the backend's thread, but for its construction.
class OpenAiBackend::Transfer {
 public:
  Transfer(const OpenAiBackend& backend, uint64_t number, const std::string& body,
           AnswerListener& listener)
      : number_(number),
        server_(backend.options_.connection.server),
        slow_read_delay_(backend.settings_.slow_read_delay),
        listener_(listener),
        headers_(MakeHeaders(backend.options_.api_key)),
        easy_(MakeEasy(backend.options_.connection,
                       absl::StrCat(backend.base_url_, backend.options_.endpoint), headers_,
                       backend.settings_.timeout)) {
    curl_easy_setopt(easy(), CURLOPT_COPYPOSTFIELDS, body.c_str());
    curl_easy_setopt(easy(), CURLOPT_WRITEFUNCTION, &Transfer::OnBytes);
    curl_easy_setopt(easy(), CURLOPT_WRITEDATA, this);
    curl_easy_setopt(easy(), CURLOPT_ERRORBUFFER, error_);
    curl_easy_setopt(easy(), CURLOPT_PRIVATE, this);
  }

  CURL* easy() const { return easy_.get(); }
  bool paused() const { return paused_; }
  // How many were started before it.
  uint64_t number() const { return number_; }

  // Resumes a slow reader whose time has come.
  void ResumeIfDue(TimePoint now) {
    if (!paused_ || now < read_again_) return;
    paused_ = false;
    curl_easy_pause(easy(), CURLPAUSE_CONT);
  }

  // The transfer's end as the status of the request.
  absl::Status Judge(CURLcode code) const {
    if (!status_.ok()) return status_;
    if (code != CURLE_OK) return FromCurl(code, server_, error_);
    if (const long http = HttpStatus(); http != kHttpOk) return FromHttp(http, server_, body_);
    if (!finished_) {
      return absl::InternalError(
          absl::StrCat(server_, ": the server ended the stream without a finish reason"));
    }
    return absl::OkStatus();
  }

  void End(const absl::Status& status) { listener_.OnEnd(status, usage_); }

 private:
  static size_t OnBytes(char* bytes, size_t, size_t count, void* self) {
    return static_cast<Transfer*>(self)->Take({bytes, count});
  }

  // What libcurl's write callback returns.
  size_t Take(std::string_view bytes) {
    if (Clock::System().Now() < read_again_) {
      paused_ = true;
      return CURL_WRITEFUNC_PAUSE;  // the same bytes come again
    }
    if (HttpStatus() != kHttpOk) {
      body_ += bytes.substr(0, kMaxErrorBytes - std::min(body_.size(), kMaxErrorBytes));
      return bytes.size();
    }
    status_ = TakeEvents(bytes);
    return status_.ok() ? bytes.size() : CURL_WRITEFUNC_ERROR;
  }

  absl::Status TakeEvents(std::string_view bytes) {
    TANDEM_ASSIGN_OR_RETURN(const std::vector<std::string> events, parser_.Parse(bytes));
    for (const std::string& data : events) {
      TANDEM_ASSIGN_OR_RETURN(const CompletionEvent event, ParseCompletionEvent(data));
      finished_ |= event.finished;
      if (event.usage.prompt_tokens > 0) usage_.prompt_tokens = event.usage.prompt_tokens;
      if (event.usage.completion_tokens > 0) {
        usage_.completion_tokens = event.usage.completion_tokens;
      }
      if (!event.has_choice) continue;
      const Next next = listener_.OnTokens(1);
      if (next == Next::kCancel) return absl::CancelledError("cancelled by the client");
      if (next == Next::kReadLater) read_again_ = Clock::System().Now() + slow_read_delay_;
    }
    return absl::OkStatus();
  }

  long HttpStatus() const {
    long http = 0;
    curl_easy_getinfo(easy(), CURLINFO_RESPONSE_CODE, &http);
    return http;
  }

  const uint64_t number_;
  const std::string server_;
  const Duration slow_read_delay_;
  AnswerListener& listener_;
  const Headers headers_;
  const Easy easy_;
  char error_[CURL_ERROR_SIZE] = "";
  SseParser parser_;
  std::string body_;  // of an error
  absl::Status status_;
  ServerUsage usage_;
  TimePoint read_again_{};
  bool paused_ = false;
  bool finished_ = false;
};

OpenAiBackend::OpenAiBackend(const OpenAiOptions& options, const RequestSettings& settings)
    : options_(options),
      settings_(settings),
      base_url_(BaseUrl(options.connection)),
      multi_(curl_multi_init()),
      model_(options.model) {
  TANDEM_CHECK(multi_ != nullptr);
  thread_ = std::thread([this] { Drive(); });
}

OpenAiBackend::~OpenAiBackend() {
  close_ = true;
  curl_multi_wakeup(multi_);
  thread_.join();
  curl_multi_cleanup(multi_);
}

absl::StatusOr<ModelFacts> OpenAiBackend::Model(Deadline deadline) {
  const Headers headers = MakeHeaders(options_.api_key);
  const Easy easy = MakeEasy(options_.connection, absl::StrCat(base_url_, "/v1/models"), headers,
                             deadline.Left());
  std::string body;
  char error[CURL_ERROR_SIZE] = "";
  curl_easy_setopt(easy.get(), CURLOPT_WRITEFUNCTION, &AppendBody);
  curl_easy_setopt(easy.get(), CURLOPT_WRITEDATA, &body);
  curl_easy_setopt(easy.get(), CURLOPT_ERRORBUFFER, error);
  TANDEM_RETURN_IF_ERROR(
      FromCurl(curl_easy_perform(easy.get()), options_.connection.server, error));
  long http = 0;
  curl_easy_getinfo(easy.get(), CURLINFO_RESPONSE_CODE, &http);
  MutexLock lock(mutex_);
  if (model_.empty()) {
    if (http != kHttpOk) return FromHttp(http, options_.connection.server, body);
    TANDEM_ASSIGN_OR_RETURN(model_, FirstModel(body));
  }
  return ModelFacts{.name = model_,
                    .vocab_size = options_.vocab_size > 0 ? options_.vocab_size : kDefaultVocabSize,
                    .special_ids = {}};
}

absl::StatusOr<uint32_t> OpenAiBackend::CountTokens(const std::string& text) {
  return static_cast<uint32_t>((text.size() + kBytesPerToken - 1) / kBytesPerToken);
}

absl::StatusOr<StatsPoint> OpenAiBackend::Stats(Deadline) {
  return absl::UnimplementedError("OpenAI's API has no statistics");
}

void OpenAiBackend::Start(const LoadRequest& request, AnswerListener& listener) {
  {
    MutexLock lock(mutex_);
    new_.push_back(std::make_unique<Transfer>(
        *this, num_started_++, CompletionBody(request, model_, settings_), listener));
  }
  curl_multi_wakeup(multi_);
}

void OpenAiBackend::CancelAll() {
  {
    MutexLock lock(mutex_);
    num_cancelled_ = num_started_;
  }
  curl_multi_wakeup(multi_);
}

void OpenAiBackend::TakeNew() {
  Transfers taken;
  {
    MutexLock lock(mutex_);
    taken.swap(new_);
  }
  for (auto& transfer : taken) {
    curl_multi_add_handle(multi_, transfer->easy());
    transfers_.push_back(std::move(transfer));
  }
}

void OpenAiBackend::EndFinished() {
  int left = 0;
  while (const CURLMsg* message = curl_multi_info_read(multi_, &left)) {
    if (message->msg != CURLMSG_DONE) continue;
    const auto found = std::find_if(
        transfers_.begin(), transfers_.end(),
        [&](const auto& transfer) { return transfer->easy() == message->easy_handle; });
    const std::unique_ptr<Transfer> transfer = std::move(*found);
    transfers_.erase(found);
    const absl::Status status = transfer->Judge(message->data.result);
    curl_multi_remove_handle(multi_, transfer->easy());
    transfer->End(status);
  }
}

void OpenAiBackend::EndCancelled() {
  uint64_t num_cancelled = 0;
  {
    MutexLock lock(mutex_);
    num_cancelled = num_cancelled_;
  }
  // In the order in which they were started.
  while (!transfers_.empty() && transfers_.front()->number() < num_cancelled) {
    const std::unique_ptr<Transfer> transfer = std::move(transfers_.front());
    transfers_.erase(transfers_.begin());
    curl_multi_remove_handle(multi_, transfer->easy());
    transfer->End(absl::CancelledError("cancelled"));
  }
}

void OpenAiBackend::Drive() {
  while (!close_) {
    TakeNew();
    EndCancelled();
    int running = 0;
    curl_multi_perform(multi_, &running);
    EndFinished();
    const TimePoint now = Clock::System().Now();
    for (const auto& transfer : transfers_) transfer->ResumeIfDue(now);
    const bool any_paused = std::any_of(transfers_.begin(), transfers_.end(),
                                        [](const auto& transfer) { return transfer->paused(); });
    curl_multi_poll(multi_, nullptr, 0, any_paused ? kPollMillis : 1000, nullptr);
  }
}

}  // namespace tandem::load
