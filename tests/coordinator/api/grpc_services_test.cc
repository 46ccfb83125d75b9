// The public port apart from generating: health, reflection, and bytes that are no request.
#include <google/protobuf/descriptor.pb.h>
#include <grpcpp/generic/generic_stub.h>

#include <string>
#include <vector>

#include "proto/grpc/reflection/v1/reflection.grpc.pb.h"
#include "tests/coordinator/api/grpc_server_fixture.h"

namespace tandem::coordinator {
namespace {

using GrpcServicesTest = GrpcServerTest;

// The table of docs/operations.md, "Health".
TEST_F(GrpcServicesTest, EachServiceIsServingInItsStates) {
  // Of startup, liveness, readiness, tandem.v1.Generation and the server as a whole.
  const auto serving = [this] {
    std::string letters;
    for (const char* service : {"startup", "liveness", "readiness", "tandem.v1.Generation", ""}) {
      letters += Health(service) == health::HealthCheckResponse::SERVING ? 'S' : '-';
    }
    return letters;
  };
  Listen();
  EXPECT_EQ(serving(), "-S---") << "waiting for ranks";
  for (const size_t rank : {0, 1}) {
    state_->SetProgress(rank, {.stage = RankProgress::Stage::kLoading});
  }
  EXPECT_EQ(serving(), "-S---") << "loading";
  for (const size_t rank : {0, 1}) {
    state_->SetProgress(rank, {.stage = RankProgress::Stage::kReady});
  }
  server_->Serve(ServingModelForTest(), engine_, 1024);
  EXPECT_EQ(serving(), "SSSSS") << "ready";
  state_->SetRecovering(true);
  state_->SetProgress(1, {.stage = RankProgress::Stage::kMissing});
  EXPECT_EQ(serving(), "SS-SS") << "recovering: requests are taken, and wait";
  state_->SetRecovering(false);
  EXPECT_EQ(serving(), "SSSSS");
  state_->SetStuck(true);
  EXPECT_EQ(serving(), "S----") << "the engine is stuck";
  state_->SetStuck(false);
  state_->SetDraining();
  EXPECT_EQ(serving(), "SS---") << "draining";
  state_->SetBroken();
  EXPECT_EQ(serving(), "S----") << "broken";
}

TEST_F(GrpcServicesTest, HealthIsListed) {
  grpc::ClientContext context;
  SetDeadline(context);
  health::HealthListResponse list;
  ASSERT_TRUE(health::Health::NewStub(channel_)->List(&context, {}, &list).ok());
  ASSERT_EQ(list.statuses_size(), 6);
  for (const char* service : {"", "tandem.v1.Generation", "vllm.grpc.engine.VllmEngine", "startup",
                              "liveness", "readiness"}) {
    EXPECT_EQ(list.statuses().at(service).status(), health::HealthCheckResponse::SERVING);
  }
}

TEST_F(GrpcServicesTest, HealthOfAnotherServiceIsNotFound) {
  grpc::ClientContext context;
  SetDeadline(context);
  health::HealthCheckRequest request;
  request.set_service("another");
  health::HealthCheckResponse response;
  const grpc::Status status =
      health::Health::NewStub(channel_)->Check(&context, request, &response);
  EXPECT_EQ(status.error_code(), grpc::StatusCode::NOT_FOUND);
  EXPECT_EQ(status.error_message(), "there is no service 'another'");
}

// Shutdown waits for no Watch: the deadline is far off.
TEST_F(GrpcServicesTest, AWatchSeesChangesAndEndsWithTheServer) {
  Listen();
  grpc::ClientContext context;
  SetDeadline(context);
  auto stub = health::Health::NewStub(channel_);
  auto watch = stub->Watch(&context, health::HealthCheckRequest());
  health::HealthCheckResponse response;
  ASSERT_TRUE(watch->Read(&response));
  EXPECT_EQ(response.status(), health::HealthCheckResponse::NOT_SERVING);
  server_->Serve(ServingModelForTest(), engine_, 1024);
  ASSERT_TRUE(watch->Read(&response));
  EXPECT_EQ(response.status(), health::HealthCheckResponse::SERVING);
  state_->SetDraining();
  ASSERT_TRUE(watch->Read(&response));
  EXPECT_EQ(response.status(), health::HealthCheckResponse::NOT_SERVING);
  const auto deadline = Deadline::After(std::chrono::seconds(60));
  server_->Shutdown(deadline);
  EXPECT_FALSE(deadline.Passed());
  EXPECT_FALSE(watch->Read(&response));
  const grpc::Status status = watch->Finish();
  EXPECT_EQ(status.error_message(), "the server is shutting down");
}

TEST_F(GrpcServicesTest, CallsAreRefusedWhileTheModelIsLoading) {
  Listen();
  EXPECT_EQ(Health(""), health::HealthCheckResponse::NOT_SERVING);
  const grpc::Status generate = ClientCall(*stub_, Prompt("a")).Finish();
  EXPECT_EQ(generate.error_code(), grpc::StatusCode::UNAVAILABLE);
  EXPECT_EQ(generate.error_message(), "the server is loading its model: waiting for ranks 0/2");
  grpc::ClientContext stats_context, tokenize_context;
  v1::GetStatsResponse stats;
  EXPECT_EQ(stub_->GetStats(&stats_context, {}, &stats).error_code(),
            grpc::StatusCode::UNAVAILABLE);
  v1::TokenizeResponse tokens;
  EXPECT_EQ(stub_->Tokenize(&tokenize_context, {}, &tokens).error_code(),
            grpc::StatusCode::UNAVAILABLE);
}

// Sends `bytes` as the only message of a call, whatever they are, and reads one answer.
struct RawAnswer {
  grpc::Status status;
  std::string bytes;
};
RawAnswer CallRaw(const std::shared_ptr<grpc::Channel>& channel, const std::string& method,
                  const std::string& bytes) {
  grpc::ClientContext context;
  SetDeadline(context);
  grpc::CompletionQueue queue;
  grpc::GenericStub stub(channel);
  auto stream = stub.PrepareCall(&context, method, &queue);
  void* tag = nullptr;
  bool ok = false;
  RawAnswer answer;
  stream->StartCall(nullptr);
  queue.Next(&tag, &ok);
  grpc::Slice slice(bytes);
  stream->WriteLast(grpc::ByteBuffer(&slice, 1), grpc::WriteOptions(), nullptr);
  queue.Next(&tag, &ok);
  grpc::ByteBuffer read;
  stream->Read(&read, nullptr);
  queue.Next(&tag, &ok);
  grpc::Slice whole;
  if (ok && read.DumpToSingleSlice(&whole).ok()) {
    answer.bytes.assign(reinterpret_cast<const char*>(whole.begin()), whole.size());
  }
  stream->Finish(&answer.status, nullptr);
  queue.Next(&tag, &ok);
  queue.Shutdown();
  while (queue.Next(&tag, &ok)) {
  }
  return answer;
}

// What an official client library can't send.
TEST_F(GrpcServicesTest, BytesThatAreNoRequestAreRefusedByName) {
  const std::string service = "/tandem.v1.Generation/";
  struct Case {
    std::string method, bytes, message;
  };
  const std::string malformed = ": malformed protobuf";
  for (const auto& [method, bytes, message] : std::vector<Case>{
           {service + "Generate", "\xff\xff\xff",
            "the request is not a tandem.v1.GenerateRequest" + malformed},
           {service + "Generate", "\x12\x7fshort",
            "the request is not a tandem.v1.GenerateRequest" + malformed},
           {service + "Generate", "\x12\x04ok\xc3(",
            "tandem.v1.GenerateRequest.text is not UTF-8 from byte 2 on"},
           // sampling { stop: "a" stop: "\xff" }
           {service + "Generate",
            "\x22\x06\x4a\x01"
            "a\x4a\x01\xff",
            "tandem.v1.GenerateRequest.sampling.stop[1] is not UTF-8 from byte 0 on"},
           {service + "Tokenize", "\x0a\x01\x80",
            "tandem.v1.TokenizeRequest.text is not UTF-8 from byte 0 on"},
           {service + "Detokenize", "\x0a\x05\x01",
            "the request is not a tandem.v1.DetokenizeRequest" + malformed},
           {service + "GetStats", "\x07",
            "the request is not a tandem.v1.GetStatsRequest" + malformed},
           {service + "ResetPrefixCache", "\x07",
            "the request is not a tandem.v1.ResetPrefixCacheRequest" + malformed},
           {"/vllm.grpc.engine.VllmEngine/Generate", "\x07",
            "the request is not a vllm.grpc.engine.GenerateRequest" + malformed},
           {"/vllm.grpc.engine.VllmEngine/Abort", "\x0a\x01\xfe",
            "vllm.grpc.engine.AbortRequest.request_ids[0] is not UTF-8 from byte 0 on"},
           {"/vllm.grpc.engine.VllmEngine/HealthCheck", "\x07",
            "the request is not a vllm.grpc.engine.HealthCheckRequest" + malformed},
           {service + "GetModelInfo", "\x07",
            "the request is not a tandem.v1.GetModelInfoRequest" + malformed},
           {"/grpc.health.v1.Health/Check", "\x0a\x01\xfe",
            "grpc.health.v1.HealthCheckRequest.service is not UTF-8 from byte 0 on"},
           {"/grpc.health.v1.Health/Watch", "\x07",
            "the request is not a grpc.health.v1.HealthCheckRequest" + malformed},
           {"/grpc.reflection.v1.ServerReflection/ServerReflectionInfo", "\x07",
            "the request is not a grpc.reflection.v1.ServerReflectionRequest" + malformed},
       }) {
    const grpc::Status status = CallRaw(channel_, method, bytes).status;
    EXPECT_EQ(status.error_code(), grpc::StatusCode::INVALID_ARGUMENT) << method;
    EXPECT_EQ(status.error_message(), message) << method;
  }
}

TEST_F(GrpcServicesTest, ReflectionNamesTheServicesInBothVersions) {
  for (const std::string version : {"v1", "v1alpha"}) {
    const RawAnswer answer =
        CallRaw(channel_, "/grpc.reflection." + version + ".ServerReflection/ServerReflectionInfo",
                "\x3a\x01*");  // list_services
    EXPECT_TRUE(answer.status.ok()) << answer.status.error_message();
    for (const char* service :
         {"tandem.v1.Generation", "vllm.grpc.engine.VllmEngine", "grpc.health.v1.Health",
          "grpc.reflection.v1.ServerReflection", "grpc.reflection.v1alpha.ServerReflection"}) {
      EXPECT_NE(answer.bytes.find(service), std::string::npos) << version << " " << service;
    }
  }
}

TEST_F(GrpcServicesTest, ReflectionDescribesWhatIsAskedFor) {
  namespace reflection = grpc::reflection::v1;
  auto stub = reflection::ServerReflection::NewStub(channel_);
  grpc::ClientContext context;
  SetDeadline(context);
  auto stream = stub->ServerReflectionInfo(&context);
  const auto ask = [&](const reflection::ServerReflectionRequest& request) {
    reflection::ServerReflectionResponse response;
    EXPECT_TRUE(stream->Write(request) && stream->Read(&response));
    return response;
  };
  reflection::ServerReflectionRequest by_symbol, by_name, missing;
  by_symbol.set_file_containing_symbol("tandem.v1.Generation.Generate");
  const auto symbol = ask(by_symbol).file_descriptor_response();
  ASSERT_EQ(symbol.file_descriptor_proto_size(), 1);
  google::protobuf::FileDescriptorProto file;
  ASSERT_TRUE(file.ParseFromString(symbol.file_descriptor_proto(0)));
  EXPECT_EQ(file.name(), "tandem/v1/generation.proto");

  by_name.set_file_by_filename("grpc/reflection/v1alpha/reflection.proto");
  EXPECT_EQ(ask(by_name).file_descriptor_response().file_descriptor_proto_size(), 2)
      << "with the file that it imports";
  missing.set_file_containing_symbol("tandem.v1.Nothing");
  EXPECT_EQ(ask(missing).error_response().error_message(), "there is no symbol tandem.v1.Nothing");
  EXPECT_EQ(ask({}).error_response().error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  stream->WritesDone();
  EXPECT_TRUE(stream->Finish().ok());
}

}  // namespace
}  // namespace tandem::coordinator
