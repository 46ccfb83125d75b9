// RouteLibraryLogs: the lines that gRPC and protobuf would write to stderr go to our log, at level
// debug: every error that matters is also a status, which is reported in our words.
#ifndef TANDEM_COMMON_RPC_LIBRARY_LOG_H_
#define TANDEM_COMMON_RPC_LIBRARY_LOG_H_

namespace tandem {

// For the whole process; call it before either library is used.
void RouteLibraryLogs();

}  // namespace tandem

#endif  // TANDEM_COMMON_RPC_LIBRARY_LOG_H_
