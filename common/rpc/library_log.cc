#include "common/rpc/library_log.h"

#include <google/protobuf/stubs/logging.h>
#include <grpc/support/log.h>

#include <chrono>
#include <string>
#include <string_view>

#include "common/base/clock.h"
#include "common/base/log.h"
#include "common/base/mutex.h"

namespace tandem {
namespace {

// How gRPC begins the line about a connection that does not become one: certificates that are not
// trusted, plain text where TLS is due. No status says that to a server.
constexpr std::string_view kHandshakeFailed = "Handshaking failed: ";
constexpr Duration kPause = std::chrono::seconds(1);

// At most a line a second: strangers cause them.
void LogHandshake(std::string_view reason) {
  static Mutex mutex;
  static TimePoint next;
  {
    MutexLock lock(mutex);
    if (Clock::System().Now() < next) return;
    next = Clock::System().Now() + kPause;
  }
  TANDEM_LOG(kWarning) << "a connection is refused: " << reason;
}

}  // namespace

void RouteLibraryLogs() {
  gpr_set_log_verbosity(GPR_LOG_SEVERITY_DEBUG);  // of which the lines about handshakes are
  gpr_set_log_function([](gpr_log_func_args* line) {
    const std::string_view message = line->message;
    if (message.starts_with(kHandshakeFailed)) {
      LogHandshake(message.substr(kHandshakeFailed.size()));
    }
    TANDEM_LOG(kDebug) << "grpc: " << message << " (" << line->file << ":" << line->line << ")";
  });
  google::protobuf::SetLogHandler(
      [](google::protobuf::LogLevel, const char* file, int line, const std::string& message) {
        TANDEM_LOG(kDebug) << "protobuf: " << message << " (" << file << ":" << line << ")";
      });
}

}  // namespace tandem
