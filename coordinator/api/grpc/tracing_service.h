// TracingService: tandem.v1.Tracing, over a TraceRecorder. UNAVAILABLE until there is a model.
//
// Thread-safe.
#ifndef TANDEM_COORDINATOR_API_GRPC_TRACING_SERVICE_H_
#define TANDEM_COORDINATOR_API_GRPC_TRACING_SERVICE_H_

#include "common/base/mutex.h"
#include "coordinator/api/grpc/serving.h"
#include "coordinator/observe/trace_recorder.h"
#include "proto/tandem/v1/trace.grpc.pb.h"

namespace tandem::coordinator {

using RawTracing = v1::Tracing::WithRawCallbackMethod_Trace<v1::Tracing::Service>;

class TracingService : public RawTracing {
 public:
  explicit TracingService(Serving& serving) : serving_(serving) {}

  // Ends the recording, if there is one, and refuses others.
  void Close();

  grpc::ServerWriteReactor<grpc::ByteBuffer>* Trace(grpc::CallbackServerContext* context,
                                                    const grpc::ByteBuffer* request) override;

 private:
  class Call;

  Serving& serving_;
  Mutex mutex_;
  Call* running_ TANDEM_GUARDED_BY(mutex_) = nullptr;
  bool closed_ TANDEM_GUARDED_BY(mutex_) = false;
};

}  // namespace tandem::coordinator

#endif  // TANDEM_COORDINATOR_API_GRPC_TRACING_SERVICE_H_
