#include "common/rpc/library_log.h"

#include <google/protobuf/stubs/logging.h>
#include <grpc/support/log.h>

#include <string>

#include "common/base/log.h"

namespace tandem {

void RouteLibraryLogs() {
  gpr_set_log_function([](gpr_log_func_args* line) {
    TANDEM_LOG(kDebug) << "grpc: " << line->message << " (" << line->file << ":" << line->line
                       << ")";
  });
  google::protobuf::SetLogHandler(
      [](google::protobuf::LogLevel, const char* file, int line, const std::string& message) {
        TANDEM_LOG(kDebug) << "protobuf: " << message << " (" << file << ":" << line << ")";
      });
}

}  // namespace tandem
