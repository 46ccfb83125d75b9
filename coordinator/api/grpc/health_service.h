// HealthService: grpc.health.v1 with Check, Watch and List, over a ServerState. Which service is
// SERVING in which state: the table in docs/operations.md.
//
// Thread-safe.
#ifndef TANDEM_COORDINATOR_API_GRPC_HEALTH_SERVICE_H_
#define TANDEM_COORDINATOR_API_GRPC_HEALTH_SERVICE_H_

#include <set>
#include <string>

#include "common/base/mutex.h"
#include "coordinator/api/grpc/open_calls.h"
#include "coordinator/observe/server_state.h"
#include "proto/grpc/health/v1/health.grpc.pb.h"

namespace tandem::coordinator {

using RawHealth = grpc::health::v1::Health::WithRawCallbackMethod_Check<
    grpc::health::v1::Health::WithRawCallbackMethod_Watch<
        grpc::health::v1::Health::WithRawCallbackMethod_List<grpc::health::v1::Health::Service>>>;

class HealthService : public RawHealth {
 public:
  // Listens to `state`, which must outlive it.
  HealthService(OpenCalls& calls, ServerState& state);
  ~HealthService() override;

  // Ends every Watch, after its last status.
  void Close();

  grpc::ServerUnaryReactor* Check(grpc::CallbackServerContext* context,
                                  const grpc::ByteBuffer* request,
                                  grpc::ByteBuffer* response) override;
  grpc::ServerWriteReactor<grpc::ByteBuffer>* Watch(grpc::CallbackServerContext* context,
                                                    const grpc::ByteBuffer* request) override;
  grpc::ServerUnaryReactor* List(grpc::CallbackServerContext* context,
                                 const grpc::ByteBuffer* request,
                                 grpc::ByteBuffer* response) override;

 private:
  using Status = grpc::health::v1::HealthCheckResponse::ServingStatus;
  class Watcher;

  // SERVICE_UNKNOWN for a service that the server does not have.
  Status StatusOf(const std::string& service) const TANDEM_REQUIRES(mutex_);
  void AdvanceAll() TANDEM_REQUIRES(mutex_);
  // For another Watch. Threads that ask at the same time may all be told that there is.
  bool HasRoom();

  OpenCalls& calls_;
  ServerState& state_;
  Mutex mutex_;
  ServerView view_ TANDEM_GUARDED_BY(mutex_);
  bool closed_ TANDEM_GUARDED_BY(mutex_) = false;
  std::set<Watcher*> watchers_ TANDEM_GUARDED_BY(mutex_);
};

}  // namespace tandem::coordinator

#endif  // TANDEM_COORDINATOR_API_GRPC_HEALTH_SERVICE_H_
