// One-line logging to stderr: TANDEM_LOG(kInfo) << "loaded " << bytes << " bytes";
//
// A line is written with one write(2), so lines of several processes never interleave. Thread-safe.
#ifndef TANDEM_COMMON_BASE_LOG_H_
#define TANDEM_COMMON_BASE_LOG_H_

#include <sstream>
#include <string>

namespace tandem {

enum class LogLevel { kDebug, kInfo, kWarning, kError };

// Lines below `level` are dropped. The default is kInfo.
void SetLogLevel(LogLevel level);
LogLevel GetLogLevel();
// A tag in every line of this process, such as "worker 1". Set once at start.
void SetLogTag(std::string tag);

namespace internal {

class LogLine {
 public:
  explicit LogLine(LogLevel level) : level_(level) {}
  ~LogLine();
  std::ostream& stream() { return stream_; }

 private:
  LogLevel level_;
  std::ostringstream stream_;
};

}  // namespace internal
}  // namespace tandem

#define TANDEM_LOG(severity)                                      \
  switch (0)                                                      \
  case 0:                                                         \
  default:                                                        \
    if (::tandem::LogLevel::severity < ::tandem::GetLogLevel()) { \
    } else                                                        \
      ::tandem::internal::LogLine(::tandem::LogLevel::severity).stream()

#endif  // TANDEM_COMMON_BASE_LOG_H_
