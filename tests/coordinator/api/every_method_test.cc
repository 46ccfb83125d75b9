// No method of the public port is forgotten by the check of tokens: every one that the server says
// it has is called.
#include <google/protobuf/descriptor.h>
#include <grpcpp/generic/generic_stub.h>
#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>

#include <condition_variable>
#include <fstream>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "coordinator/api/auth/gate.h"
#include "proto/grpc/reflection/v1/reflection.grpc.pb.h"
#include "tests/coordinator/api/grpc_server_fixture.h"

namespace tandem::coordinator {
namespace {

namespace reflection = grpc::reflection::v1;

constexpr char kUser[] = "the-token-of-a-user";
constexpr char kOps[] = "the-token-of-the-ops";

class EveryMethodTest : public GrpcServerTest {
 protected:
  void SetUp() override {
    const std::string path = ::testing::TempDir() + "/tokens";
    std::ofstream(path) << "user generate " << kUser << " concurrent=1\nops admin " << kOps << "\n";
    state_ = std::make_unique<ServerState>(2);
    auto socket = net::ListenSocket::Bind("--listen", "127.0.0.1:0");
    ASSERT_TRUE(socket.ok()) << socket.status();
    auto server = GrpcServer::Start(
        *std::move(socket), 64, *state_,
        {.gate = std::make_shared<Gate>(TokenStore::Open("--tokens", path).value(), "")});
    ASSERT_TRUE(server.ok()) << server.status();
    server_ = *std::move(server);
    server_->Serve(ServingModelForTest(), engine_, 1024);
    channel_ = grpc::CreateChannel(server_->address(), grpc::InsecureChannelCredentials());
    stub_ = v1::Generation::NewStub(channel_);
  }

  static void Show(const std::string& token, grpc::ClientContext& context) {
    SetDeadline(context);
    if (!token.empty()) context.AddMetadata(kAuthorization, "Bearer " + token);
  }

  // "/package.Service/Method" of all services that reflection lists.
  std::vector<std::string> Methods() {
    grpc::ClientContext context;
    Show(kUser, context);
    auto stream = reflection::ServerReflection::NewStub(channel_)->ServerReflectionInfo(&context);
    reflection::ServerReflectionRequest request;
    request.set_list_services("");
    reflection::ServerReflectionResponse response;
    EXPECT_TRUE(stream->Write(request) && stream->Read(&response));
    stream->WritesDone();
    EXPECT_TRUE(stream->Finish().ok());
    std::vector<std::string> methods;
    for (const auto& service : response.list_services_response().service()) {
      const auto* found =
          google::protobuf::DescriptorPool::generated_pool()->FindServiceByName(service.name());
      EXPECT_NE(found, nullptr) << service.name();
      for (int i = 0; found != nullptr && i < found->method_count(); ++i) {
        methods.push_back("/" + service.name() + "/" + found->method(i)->name());
      }
    }
    return methods;
  }

  // The status of a call with a message that is no request.
  grpc::Status Call(const std::string& method, const std::string& token) {
    grpc::ClientContext context;
    Show(token, context);
    const grpc::Slice garbage("\xff\xff");
    const grpc::ByteBuffer request(&garbage, 1);
    grpc::ByteBuffer response;
    std::mutex mutex;
    std::condition_variable changed;
    bool done = false;
    grpc::Status status;
    grpc::GenericStub(channel_).UnaryCall(&context, method, {}, &request, &response,
                                          [&](grpc::Status ended) {
                                            const std::lock_guard<std::mutex> lock(mutex);
                                            status = std::move(ended);
                                            done = true;
                                            changed.notify_all();
                                          });
    std::unique_lock<std::mutex> lock(mutex);
    changed.wait(lock, [&] { return done; });
    return status;
  }

  // Again while the caller's request before it counts: its end may reach the client first.
  grpc::Status CallInTurn(const std::string& method, const std::string& token) {
    const Deadline deadline = Deadline::After(std::chrono::seconds(60));
    grpc::Status status = Call(method, token);
    while (status.error_code() == grpc::RESOURCE_EXHAUSTED && !deadline.Passed()) {
      status = Call(method, token);
    }
    return status;
  }
};

TEST_F(EveryMethodTest, IsRefusedWithoutATokenButHealth) {
  const std::vector<std::string> methods = Methods();
  ASSERT_GE(methods.size(), 10u);
  for (const std::string& method : methods) {
    const bool is_health = method.starts_with("/grpc.health.v1.Health/");
    const grpc::Status without = Call(method, "");
    const grpc::Status unknown = Call(method, "a-token-that-no-one-has");
    if (is_health) {
      EXPECT_EQ(without.error_code(), grpc::INVALID_ARGUMENT) << method;  // it was read
      EXPECT_EQ(unknown.error_code(), grpc::INVALID_ARGUMENT) << method;
    } else {
      EXPECT_EQ(without.error_code(), grpc::UNAUTHENTICATED) << method;
      EXPECT_EQ(without.error_message(), "a token is needed: 'authorization: Bearer TOKEN'");
      EXPECT_EQ(unknown.error_code(), grpc::UNAUTHENTICATED) << method;
    }
  }
  EXPECT_EQ(Call("/tandem.v1.Generation/NoSuchMethod", "").error_code(), grpc::UNAUTHENTICATED);
  EXPECT_EQ(Call("/no.such.Service/Method", kOps).error_code(), grpc::UNIMPLEMENTED);
}

TEST_F(EveryMethodTest, NeedsTheScopeThatTheTableSays) {
  const std::set<std::string> generate = {"/tandem.v1.Generation/Embed",
                                          "/tandem.v1.Generation/Score",
                                          "/tandem.v1.Generation/Generate",
                                          "/tandem.v1.Generation/Tokenize",
                                          "/tandem.v1.Generation/Detokenize",
                                          "/tandem.v1.Generation/GetModelInfo",
                                          "/vllm.grpc.engine.VllmEngine/Generate",
                                          "/vllm.grpc.engine.VllmEngine/Abort",
                                          "/vllm.grpc.engine.VllmEngine/GetModelInfo"};
  const std::set<std::string> any = {
      "/vllm.grpc.engine.VllmEngine/HealthCheck",
      "/grpc.reflection.v1.ServerReflection/ServerReflectionInfo",
      "/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo"};
  const auto read = grpc::INVALID_ARGUMENT;
  const auto refused = grpc::PERMISSION_DENIED;
  for (const std::string& method : Methods()) {
    const bool both = any.contains(method) || method.starts_with("/grpc.health.v1.Health/");
    const bool for_user = both || generate.contains(method);
    const bool for_ops = both || !generate.contains(method);
    EXPECT_EQ(CallInTurn(method, kUser).error_code(), for_user ? read : refused) << method;
    EXPECT_EQ(CallInTurn(method, kOps).error_code(), for_ops ? read : refused) << method;
  }
}

TEST_F(EveryMethodTest, TwoTokensAreNone) {
  grpc::ClientContext context;
  Show(kUser, context);
  context.AddMetadata(kAuthorization, std::string("Bearer ") + kUser);
  v1::GetModelInfoResponse response;
  EXPECT_EQ(stub_->GetModelInfo(&context, {}, &response).error_code(), grpc::UNAUTHENTICATED);
}

TEST_F(EveryMethodTest, ARunningRequestCountsUntilItEnds) {
  grpc::ClientContext first;
  Show(kUser, first);
  const auto running = stub_->Generate(&first, Prompt("a"));
  WaitForStream();
  grpc::ClientContext second;
  Show(kUser, second);
  const auto refused = stub_->Generate(&second, Prompt("b"));
  v1::GenerateResponse response;
  EXPECT_FALSE(refused->Read(&response));
  const grpc::Status status = refused->Finish();
  EXPECT_EQ(status.error_code(), grpc::RESOURCE_EXHAUSTED);
  EXPECT_EQ(status.error_message(), "token 'user' has 1 requests in progress, at most 1");
  const auto header = second.GetServerTrailingMetadata().find("grpc-retry-pushback-ms");
  ASSERT_NE(header, second.GetServerTrailingMetadata().end());
  EXPECT_EQ(std::string(header->second.data(), header->second.size()), "1000");
  first.TryCancel();
  EXPECT_EQ(running->Finish().error_code(), grpc::CANCELLED);
  // The server's side of the call may end a little later than the client's.
  const Deadline deadline = Deadline::After(std::chrono::seconds(60));
  grpc::StatusCode code = grpc::RESOURCE_EXHAUSTED;
  while (code == grpc::RESOURCE_EXHAUSTED && !deadline.Passed()) {
    grpc::ClientContext third;
    Show(kUser, third);
    v1::TokenizeRequest request;
    request.set_text("hi");
    v1::TokenizeResponse tokens;
    code = stub_->Tokenize(&third, request, &tokens).error_code();
  }
  EXPECT_EQ(code, grpc::OK);
}

}  // namespace
}  // namespace tandem::coordinator
