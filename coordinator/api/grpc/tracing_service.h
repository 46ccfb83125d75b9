// TracingService: tandem.v1.Tracing, over a TraceRecorder. UNAVAILABLE until there is a model.
//
// Thread-safe.
#ifndef TANDEM_COORDINATOR_API_GRPC_TRACING_SERVICE_H_
#define TANDEM_COORDINATOR_API_GRPC_TRACING_SERVICE_H_

#include <chrono>

#include "common/base/clock.h"
#include "common/base/mutex.h"
#include "coordinator/api/grpc/serving.h"
#include "coordinator/observe/trace_recorder.h"
#include "proto/tandem/v1/trace.grpc.pb.h"

namespace tandem::coordinator {

using RawTracing = v1::Tracing::WithRawCallbackMethod_Trace<v1::Tracing::Service>;

class TracingService : public RawTracing {
 public:
  // `grace`: a client that has not read its recording so long after the end is cut off.
  explicit TracingService(Serving& serving, Duration grace = std::chrono::seconds(10))
      : serving_(serving), grace_(grace) {}

  // Ends the recording, if there is one, and refuses others.
  void Close();

  grpc::ServerWriteReactor<grpc::ByteBuffer>* Trace(grpc::CallbackServerContext* context,
                                                    const grpc::ByteBuffer* request) override;

 private:
  class Call;

  Serving& serving_;
  const Duration grace_;
  Mutex mutex_;
  Call* running_ TANDEM_GUARDED_BY(mutex_) = nullptr;
  bool closed_ TANDEM_GUARDED_BY(mutex_) = false;
};

}  // namespace tandem::coordinator

#endif  // TANDEM_COORDINATOR_API_GRPC_TRACING_SERVICE_H_
