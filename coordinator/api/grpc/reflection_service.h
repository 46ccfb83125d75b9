// ReflectionService: grpc.reflection v1, and v1alpha, which is equal but for its name: the services
// and messages of the public port.
//
// Thread-safe.
#ifndef TANDEM_COORDINATOR_API_GRPC_REFLECTION_SERVICE_H_
#define TANDEM_COORDINATOR_API_GRPC_REFLECTION_SERVICE_H_

#include <set>

#include "common/base/mutex.h"
#include "coordinator/api/grpc/open_calls.h"
#include "proto/grpc/reflection/v1/reflection.grpc.pb.h"
#include "proto/grpc/reflection/v1alpha/reflection.grpc.pb.h"

namespace grpc {
class ServerBuilder;
}

namespace tandem::coordinator {

// The answer to one request.
grpc::reflection::v1::ServerReflectionResponse Reflect(
    const grpc::reflection::v1::ServerReflectionRequest& request);

class ReflectionService {
 public:
  explicit ReflectionService(OpenCalls& calls);
  void AddTo(grpc::ServerBuilder& builder);
  // Ends every stream.
  void Close();

 private:
  class Stream;
  using Reactor = grpc::ServerBidiReactor<grpc::ByteBuffer, grpc::ByteBuffer>;

  // `Version` is grpc::reflection::v1 or v1alpha.
  template <typename Version>
  class Service : public Version {
   public:
    explicit Service(ReflectionService& owner) : owner_(owner) {}
    Reactor* ServerReflectionInfo(grpc::CallbackServerContext*) override {
      return owner_.NewStream();
    }

   private:
    ReflectionService& owner_;
  };
  using V1 = grpc::reflection::v1::ServerReflection;
  using V1Alpha = grpc::reflection::v1alpha::ServerReflection;

  Reactor* NewStream();

  Service<V1::WithRawCallbackMethod_ServerReflectionInfo<V1::Service>> v1_;
  Service<V1Alpha::WithRawCallbackMethod_ServerReflectionInfo<V1Alpha::Service>> v1alpha_;
  OpenCalls& calls_;
  Mutex mutex_;
  bool closed_ TANDEM_GUARDED_BY(mutex_) = false;
  std::set<Stream*> streams_ TANDEM_GUARDED_BY(mutex_);
};

}  // namespace tandem::coordinator

#endif  // TANDEM_COORDINATOR_API_GRPC_REFLECTION_SERVICE_H_
