// One-line logging to stderr, as text or as JSON:
//
//   TANDEM_LOG(kInfo) << "loaded " << bytes << " bytes";
//   TANDEM_LOG_REQUEST(kInfo, (LogRequest{.id = id})) << "the client is gone";
//
// A line is written with one write(2), so lines of several processes never interleave. Thread-safe.
#ifndef TANDEM_COMMON_BASE_LOG_H_
#define TANDEM_COMMON_BASE_LOG_H_

#include <sstream>
#include <string>
#include <string_view>

namespace tandem {

enum class LogLevel { kDebug, kInfo, kWarning, kError };

// kJson: an object per line with "time" (RFC 3339), "level", "message" and, where there is one,
// "process" (the tag), "request_id" and "trace_id".
enum class LogFormat { kText, kJson };

// The request that a line is about. Borrows.
struct LogRequest {
  std::string_view id{};
  std::string_view trace_id{};  // of W3C Trace Context; empty: the client sent none
};

// The default is kText. Set once at start.
void SetLogFormat(LogFormat format);
// Lines below `level` are dropped. The default is kInfo.
void SetLogLevel(LogLevel level);
LogLevel GetLogLevel();
// A tag in every line of this process, such as "worker 1". Set once at start.
void SetLogTag(std::string tag);

namespace internal {

class LogLine {
 public:
  explicit LogLine(LogLevel level, LogRequest request = {}) : level_(level), request_(request) {}
  ~LogLine();
  std::ostream& stream() { return stream_; }

 private:
  LogLevel level_;
  LogRequest request_;
  std::ostringstream stream_;
};

}  // namespace internal
}  // namespace tandem

#define TANDEM_LOG(severity) TANDEM_LOG_REQUEST(severity, ::tandem::LogRequest())

#define TANDEM_LOG_REQUEST(severity, request)                     \
  switch (0)                                                      \
  case 0:                                                         \
  default:                                                        \
    if (::tandem::LogLevel::severity < ::tandem::GetLogLevel()) { \
    } else                                                        \
      ::tandem::internal::LogLine(::tandem::LogLevel::severity, request).stream()

#endif  // TANDEM_COMMON_BASE_LOG_H_
