// W3C Trace Context: which trace of a distributed system a call belongs to.
//
// Format: https://www.w3.org/TR/trace-context/#traceparent-header
#ifndef TANDEM_COORDINATOR_API_TRACE_CONTEXT_H_
#define TANDEM_COORDINATOR_API_TRACE_CONTEXT_H_

#include <string>
#include <string_view>

namespace tandem::coordinator {

inline constexpr char kTraceParent[] = "traceparent";  // the header, and gRPC's metadata

// The trace id of a `traceparent`, 32 hexadecimal digits; empty if it is malformed.
std::string TraceId(std::string_view traceparent);

}  // namespace tandem::coordinator

#endif  // TANDEM_COORDINATOR_API_TRACE_CONTEXT_H_
