// Events of a recording as messages of tandem.v1.Tracing.
#ifndef TANDEM_COORDINATOR_API_GRPC_TRACE_FORM_H_
#define TANDEM_COORDINATOR_API_GRPC_TRACE_FORM_H_

#include "common/base/clock.h"
#include "coordinator/observe/trace_event.h"
#include "proto/tandem/v1/trace.pb.h"

namespace tandem::coordinator {

// Times count from `start`.
void ToProto(const TraceEvent& event, TimePoint start, v1::TraceEvent& out);

}  // namespace tandem::coordinator

#endif  // TANDEM_COORDINATOR_API_GRPC_TRACE_FORM_H_
