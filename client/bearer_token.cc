#include "client/bearer_token.h"

#include "absl/strings/str_cat.h"

namespace tandem::client {
namespace {

using grpc::experimental::ClientInterceptorFactoryInterface;
using grpc::experimental::ClientRpcInfo;
using grpc::experimental::InterceptionHookPoints;
using grpc::experimental::Interceptor;
using grpc::experimental::InterceptorBatchMethods;

class HeaderInterceptor : public Interceptor {
 public:
  explicit HeaderInterceptor(const std::string& value) : value_(value) {}

  void Intercept(InterceptorBatchMethods* methods) override {
    if (methods->QueryInterceptionHookPoint(InterceptionHookPoints::PRE_SEND_INITIAL_METADATA)) {
      methods->GetSendInitialMetadata()->emplace("authorization", value_);
    }
    methods->Proceed();
  }

 private:
  const std::string& value_;  // of the factory, which lives as long as the channel
};

class Factory : public ClientInterceptorFactoryInterface {
 public:
  explicit Factory(std::string value) : value_(std::move(value)) {}
  Interceptor* CreateClientInterceptor(ClientRpcInfo*) override {
    return new HeaderInterceptor(value_);
  }

 private:
  const std::string value_;
};

}  // namespace

Interceptors ShowToken(const std::string& token) {
  Interceptors interceptors;
  if (!token.empty()) {
    interceptors.push_back(std::make_unique<Factory>(absl::StrCat("Bearer ", token)));
  }
  return interceptors;
}

}  // namespace tandem::client
