// The API over a real gRPC connection, with an engine that the test plays.
#include "coordinator/api/grpc/grpc_server.h"

#include <grpcpp/generic/generic_stub.h>
#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>

#include <chrono>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "proto/grpc/health/v1/health.grpc.pb.h"
#include "proto/tandem/v1/generation.grpc.pb.h"
#include "tests/coordinator/api/fake_engine.h"
#include "tests/coordinator/api/serving_model_for_test.h"
#include "tests/coordinator/api/slow_tokenizer.h"

namespace tandem::coordinator {
namespace {

namespace health = grpc::health::v1;

// No test waits so long unless it fails.
void SetDeadline(grpc::ClientContext& context) {
  context.set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(60));
}

v1::GenerateRequest Prompt(const std::string& id) {
  v1::GenerateRequest request;
  request.set_request_id(id);
  request.set_text("hi");
  return request;
}

// A Generate call as a client makes it.
class ClientCall {
 public:
  ClientCall(v1::Generation::Stub& stub, const v1::GenerateRequest& request) {
    SetDeadline(context_);
    reader_ = stub.Generate(&context_, request);
  }
  ~ClientCall() {
    context_.TryCancel();
    if (!finished_) Finish();
  }

  // The next message; empty at the end.
  std::optional<v1::GenerateResponse> Read() {
    v1::GenerateResponse response;
    if (!reader_->Read(&response)) return std::nullopt;
    return response;
  }
  // Reads to the end; the text and ids gather in one message.
  v1::GenerateResponse ReadAll() {
    v1::GenerateResponse all;
    while (auto response = Read()) {
      const std::string text = all.text() + response->text();
      all.MergeFrom(*response);
      all.set_text(text);
    }
    return all;
  }
  grpc::Status Finish() {
    finished_ = true;
    while (Read()) {
    }
    return reader_->Finish();
  }
  void Cancel() { context_.TryCancel(); }

 private:
  grpc::ClientContext context_;
  std::unique_ptr<grpc::ClientReader<v1::GenerateResponse>> reader_;
  bool finished_ = false;
};

class GrpcServerTest : public testing::Test {
 protected:
  void SetUp() override { Start(ServingModelForTest()); }
  void Start(ServingModel model) {
    auto server = GrpcServer::Start("127.0.0.1:0", std::move(model), engine_, 1024);
    ASSERT_TRUE(server.ok()) << server.status();
    server_ = *std::move(server);
    channel_ = grpc::CreateChannel(server_->address(), grpc::InsecureChannelCredentials());
    stub_ = v1::Generation::NewStub(channel_);
  }

  // The stream of the newest request, which is the `count`th.
  std::shared_ptr<TokenStream> WaitForStream(size_t count = 1) {
    const std::vector<Request> requests = engine_.WaitForRequests(count);
    EXPECT_EQ(requests.size(), count);
    return requests.at(count - 1).stream;
  }

  health::HealthCheckResponse::ServingStatus Health(const std::string& service) {
    grpc::ClientContext context;
    SetDeadline(context);
    health::HealthCheckRequest request;
    request.set_service(service);
    health::HealthCheckResponse response;
    const grpc::Status status =
        health::Health::NewStub(channel_)->Check(&context, request, &response);
    EXPECT_TRUE(status.ok()) << status.error_message();
    return response.status();
  }

  FakeEngine engine_;
  std::unique_ptr<GrpcServer> server_;
  std::shared_ptr<grpc::Channel> channel_;
  std::unique_ptr<v1::Generation::Stub> stub_;
};

TEST_F(GrpcServerTest, StreamsToTheEnd) {
  ClientCall call(*stub_, Prompt("a"));
  auto stream = WaitForStream();
  Send(*stream, {.tokens = {'h'}});
  const auto first = call.Read();
  ASSERT_TRUE(first.has_value()) << "a token goes out before the next one is there";
  EXPECT_EQ(first->text(), "h");
  EXPECT_EQ(first->request_id(), "a");
  EXPECT_EQ(first->finish_reason(), v1::FINISH_REASON_UNSPECIFIED);
  EXPECT_FALSE(first->has_usage());

  Send(*stream, {.tokens = {'o'}});
  engine_.Finish("a", kEos, FinishReason::kStop, {.prompt_tokens = 3, .completion_tokens = 3});
  const v1::GenerateResponse rest = call.ReadAll();
  EXPECT_EQ(rest.text(), "o");
  EXPECT_EQ(std::vector<TokenId>(rest.token_ids().begin(), rest.token_ids().end()),
            (std::vector<TokenId>{'o', kEos}));
  EXPECT_EQ(rest.finish_reason(), v1::FINISH_REASON_STOP);
  EXPECT_EQ(rest.usage().prompt_tokens(), 3);
  EXPECT_EQ(rest.usage().completion_tokens(), 3);
  EXPECT_TRUE(call.Finish().ok());
  EXPECT_TRUE(engine_.cancelled().empty());
}

TEST_F(GrpcServerTest, ManyTokensBeforeTheClientReadsAreAllThere) {
  ClientCall call(*stub_, Prompt("a"));
  auto stream = WaitForStream();
  const std::string text(5000, 'x');
  for (const TokenId token : Bytes(text)) Send(*stream, {.tokens = {token}});
  engine_.Finish("a", 'y', FinishReason::kLength, {.completion_tokens = 5001});
  EXPECT_EQ(call.ReadAll().text(), text + "y");
  EXPECT_TRUE(call.Finish().ok());
}

TEST_F(GrpcServerTest, LogprobsGoOutWithTheirTokens) {
  v1::GenerateRequest request = Prompt("a");
  request.mutable_sampling()->set_logprobs(1);
  request.mutable_sampling()->set_prompt_logprobs(0);
  ClientCall call(*stub_, request);
  auto stream = WaitForStream();
  Send(*stream, {.prompt_logprobs = {{.token = {.token = 'b', .logprob = -2.5f, .rank = 9}}}});
  Send(*stream, {.tokens = {'h'},
                 .logprobs = {{.token = {.token = 'h', .logprob = -1.5f, .rank = 2},
                               .top = {{.token = 'x', .logprob = -0.25f, .rank = 1}}}}});
  const auto first = call.Read();
  ASSERT_TRUE(first.has_value());
  ASSERT_EQ(first->token_ids_size(), 1);
  ASSERT_EQ(first->logprobs_size(), 1);
  EXPECT_EQ(first->logprobs(0).ShortDebugString(),
            "token_id: 104 logprob: -1.5 rank: 2 top { token_id: 120 logprob: -0.25 rank: 1 }");
  ASSERT_EQ(first->prompt_logprobs_size(), 2);
  EXPECT_EQ(first->prompt_logprobs(0).ByteSizeLong(), 0u);
  EXPECT_EQ(first->prompt_logprobs(1).ShortDebugString(), "token_id: 98 logprob: -2.5 rank: 9");
  engine_.Finish("a", 'i', FinishReason::kLength, Usage{});
  EXPECT_TRUE(call.Finish().ok());
}

// More than the 4 MB that gRPC's clients take in one message.
TEST_F(GrpcServerTest, ALongPromptsLogprobsGoOutInSeveralMessages) {
  v1::GenerateRequest request = Prompt("a");
  request.mutable_sampling()->set_prompt_logprobs(20);
  ClientCall call(*stub_, request);
  auto stream = WaitForStream();
  const TokenLogprobs one{.token = {.token = 1 << 20, .logprob = -2.5f, .rank = 1 << 20},
                          .top = std::vector<step::TokenLogprob>(
                              20, {.token = 1 << 20, .logprob = -1.0f, .rank = 1 << 20})};
  constexpr int kPrompt = 20'000;
  Send(*stream, {.prompt_logprobs = std::vector<TokenLogprobs>(kPrompt - 1, one)});
  engine_.Finish("a", 'i', FinishReason::kLength, Usage{});
  int entries = 0;
  size_t largest = 0;
  std::string text;
  while (const auto response = call.Read()) {
    entries += response->prompt_logprobs_size();
    largest = std::max(largest, response->ByteSizeLong());
    text += response->text();
  }
  EXPECT_EQ(entries, kPrompt);
  EXPECT_EQ(text, "i");
  EXPECT_LT(largest, 2u << 20);
  EXPECT_TRUE(call.Finish().ok());
}

TEST_F(GrpcServerTest, AStopStringEndsTheCall) {
  v1::GenerateRequest request = Prompt("a");
  request.mutable_sampling()->add_stop("lo");
  ClientCall call(*stub_, request);
  auto stream = WaitForStream();
  EXPECT_TRUE(Send(*stream, {.tokens = {'l'}}));
  EXPECT_FALSE(Send(*stream, {.tokens = {'o'}, .usage = {.completion_tokens = 2}}));
  const v1::GenerateResponse all = call.ReadAll();
  EXPECT_EQ(all.text(), "");
  EXPECT_EQ(all.token_ids_size(), 2);
  EXPECT_EQ(all.finish_reason(), v1::FINISH_REASON_STOP);
  EXPECT_EQ(all.usage().completion_tokens(), 2);
}

TEST_F(GrpcServerTest, AClientThatGoesCancelsItsOwnRequestOnly) {
  ClientCall staying(*stub_, Prompt("staying"));
  WaitForStream(1);
  ClientCall leaving(*stub_, Prompt("leaving"));
  WaitForStream(2);
  leaving.Cancel();
  EXPECT_EQ(engine_.WaitForCancel(), std::vector<std::string>{"leaving"});
  EXPECT_EQ(leaving.Finish().error_code(), grpc::StatusCode::CANCELLED);

  engine_.Finish("staying", 'x', FinishReason::kLength, Usage{});
  EXPECT_EQ(staying.ReadAll().text(), "x");
  EXPECT_TRUE(staying.Finish().ok());
  server_->Shutdown(Deadline::After(std::chrono::seconds(10)));  // every call is over
  EXPECT_EQ(engine_.cancelled(), std::vector<std::string>{"leaving"});
}

TEST_F(GrpcServerTest, TokenizingALongPromptHoldsUpNoOtherCall) {
  ServingModel model = ServingModelForTest();
  auto slow = std::make_shared<SlowTokenizer>(model.tokenizer);
  model.tokenizer = slow;
  Start(std::move(model));
  v1::GenerateRequest long_prompt = Prompt("long");
  long_prompt.set_text(std::string(SlowTokenizer::kLong + 1, 'x'));
  ClientCall tokenizing(*stub_, long_prompt);
  slow->AwaitStart();
  long_prompt.set_request_id("behind it");
  ClientCall waiting(*stub_, long_prompt);

  ClientCall other(*stub_, Prompt("other"));
  EXPECT_EQ(engine_.WaitForRequests(1).at(0).id, "other");
  engine_.Finish("other", 'x', FinishReason::kLength, Usage{});
  EXPECT_TRUE(other.Finish().ok());
  grpc::ClientContext context;
  SetDeadline(context);
  v1::TokenizeRequest request;
  request.set_text("hi");
  v1::TokenizeResponse response;
  EXPECT_TRUE(stub_->Tokenize(&context, request, &response).ok());

  // Clients that disconnect meanwhile leak nothing. (A cancel that is slower than the release finds
  // its request in the engine, and cancels it there.)
  tokenizing.Cancel();
  waiting.Cancel();
  EXPECT_EQ(tokenizing.Finish().error_code(), grpc::StatusCode::CANCELLED);
  EXPECT_EQ(waiting.Finish().error_code(), grpc::StatusCode::CANCELLED);
  slow->Release();
  server_->Shutdown(Deadline::After(std::chrono::seconds(10)));  // every call is over
  EXPECT_EQ(engine_.WaitForRequests(1).size(), 1 + engine_.cancelled().size());
}

// The client goes when its request has just left the engine and another has taken the id.
TEST_F(GrpcServerTest, ALateCancelDoesNotHitTheNextRequestOfThatId) {
  ClientCall first(*stub_, Prompt("same"));
  WaitForStream(1);
  const auto over = engine_.Leave("same");
  ClientCall second(*stub_, Prompt("same"));
  auto stream = WaitForStream(2);
  first.Cancel();
  EXPECT_EQ(engine_.WaitForCancel().size(), 1u);
  EXPECT_EQ(first.Finish().error_code(), grpc::StatusCode::CANCELLED);
  Send(*over, {.tokens = {'x'}, .reason = FinishReason::kLength});

  Send(*stream, {.tokens = {'o'}});
  engine_.Finish("same", 'k', FinishReason::kLength, Usage{});
  EXPECT_EQ(second.ReadAll().text(), "ok");
  EXPECT_TRUE(second.Finish().ok());
}

TEST_F(GrpcServerTest, ADuplicateIdIsRefusedAndDoesNotCancelTheFirst) {
  ClientCall first(*stub_, Prompt("same"));
  auto stream = WaitForStream();
  ClientCall second(*stub_, Prompt("same"));
  const grpc::Status refused = second.Finish();
  EXPECT_EQ(refused.error_code(), grpc::StatusCode::ALREADY_EXISTS);
  EXPECT_NE(refused.error_message().find("'same'"), std::string::npos) << refused.error_message();

  Send(*stream, {.tokens = {'a'}});
  engine_.Finish("same", 'b', FinishReason::kLength, Usage{});
  EXPECT_EQ(first.ReadAll().text(), "ab");
  EXPECT_TRUE(first.Finish().ok());
  server_->Shutdown(Deadline::After(std::chrono::seconds(10)));
  EXPECT_TRUE(engine_.cancelled().empty());
}

TEST_F(GrpcServerTest, RefusalsCarryCodeAndMessage) {
  engine_.Refuse(absl::ResourceExhaustedError("1024 requests wait already"));
  const grpc::Status full = ClientCall(*stub_, Prompt("a")).Finish();
  EXPECT_EQ(full.error_code(), grpc::StatusCode::RESOURCE_EXHAUSTED);
  EXPECT_EQ(full.error_message(), "1024 requests wait already");

  v1::GenerateRequest hostile = Prompt("b");
  hostile.mutable_sampling()->set_top_p(2);
  EXPECT_EQ(ClientCall(*stub_, hostile).Finish().error_code(), grpc::StatusCode::INVALID_ARGUMENT);

  v1::GenerateRequest long_stop = Prompt("c");
  long_stop.mutable_sampling()->add_stop(std::string(100'000, 'x'));
  EXPECT_EQ(ClientCall(*stub_, long_stop).Finish().error_code(),
            grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_TRUE(engine_.cancelled().empty());
}

TEST_F(GrpcServerTest, AFailureMidStreamIsTheCallsStatus) {
  ClientCall call(*stub_, Prompt("a"));
  Send(*WaitForStream(), {.tokens = {'x'}});
  ASSERT_TRUE(call.Read().has_value());
  engine_.Fail("a", absl::UnavailableError("rank 1 exited with signal 9"));
  const grpc::Status status = call.Finish();
  EXPECT_EQ(status.error_code(), grpc::StatusCode::UNAVAILABLE);
  EXPECT_EQ(status.error_message(), "rank 1 exited with signal 9");
}

TEST_F(GrpcServerTest, ShutdownEndsCallsThatTheEngineDoesNot) {
  ClientCall call(*stub_, Prompt("a"));
  WaitForStream();
  server_->Shutdown(Deadline::After(Duration::zero()));
  EXPECT_EQ(engine_.cancelled(), std::vector<std::string>{"a"});
  EXPECT_FALSE(call.Finish().ok());
}

TEST_F(GrpcServerTest, TokenizesAndBack) {
  grpc::ClientContext context;
  SetDeadline(context);
  v1::TokenizeRequest request;
  request.set_text("a\u00e4");
  v1::TokenizeResponse tokens;
  ASSERT_TRUE(stub_->Tokenize(&context, request, &tokens).ok());
  EXPECT_EQ(std::vector<TokenId>(tokens.ids().begin(), tokens.ids().end()),
            (std::vector<TokenId>{kBos, 'a', 0xc3, 0xa4}));
  ASSERT_EQ(tokens.token_bytes_size(), 4);
  EXPECT_EQ(tokens.token_bytes(0), "<|bos|>");
  EXPECT_EQ(tokens.token_bytes(2), "\xc3");

  grpc::ClientContext back;
  SetDeadline(back);
  v1::DetokenizeRequest ids;
  *ids.mutable_ids() = tokens.ids();
  v1::DetokenizeResponse text;
  ASSERT_TRUE(stub_->Detokenize(&back, ids, &text).ok());
  EXPECT_EQ(text.text(), "a\u00e4");

  grpc::ClientContext bad;
  SetDeadline(bad);
  ids.add_ids(-5);
  EXPECT_EQ(stub_->Detokenize(&bad, ids, &text).error_code(), grpc::StatusCode::INVALID_ARGUMENT);
}

TEST_F(GrpcServerTest, ReportsModelAndStats) {
  grpc::ClientContext context;
  SetDeadline(context);
  v1::GetModelInfoResponse info;
  ASSERT_TRUE(stub_->GetModelInfo(&context, {}, &info).ok());
  EXPECT_EQ(info.name(), "test model");
  EXPECT_EQ(info.context_length(), static_cast<int32_t>(kMaxModelLen));
  EXPECT_EQ(info.vocab_size(), static_cast<int32_t>(kHead));
  EXPECT_EQ(info.bos_id(), kBos);
  EXPECT_EQ(info.eos_id(), kEos);
  EXPECT_EQ(info.end_of_generation_ids(0), kEos);
  EXPECT_EQ(info.chat_template(), "{{ messages }}");
  EXPECT_EQ(info.tensor_parallel_size(), 2);

  grpc::ClientContext again;
  SetDeadline(again);
  v1::GetStatsResponse stats;
  ASSERT_TRUE(stub_->GetStats(&again, {}, &stats).ok());
  // Each number once, in the order of its declaration, under a name that can be exported.
  std::vector<int64_t> values;
  std::set<std::string> names;
  for (const v1::Metric& metric : stats.metrics()) {
    values.push_back(metric.value());
    names.insert(metric.name());
    EXPECT_TRUE(absl::StartsWith(metric.name(), "tandem_")) << metric.name();
    const bool is_total = absl::EndsWith(metric.name(), "_total");
    EXPECT_EQ(is_total, metric.kind() == v1::Metric::COUNTER) << metric.name();
    EXPECT_FALSE(metric.help().empty()) << metric.name();
  }
  EXPECT_EQ(names.size(), values.size());
  EXPECT_EQ(values, (std::vector<int64_t>{1, 2, 3, 4, 5, 6, 0, 7, 8}));
}

TEST_F(GrpcServerTest, HealthIsServingUntilItStops) {
  EXPECT_EQ(Health(""), health::HealthCheckResponse::SERVING);
  EXPECT_EQ(Health("tandem.v1.Generation"), health::HealthCheckResponse::SERVING);
  server_->StopServing();
  EXPECT_EQ(Health(""), health::HealthCheckResponse::NOT_SERVING);
  EXPECT_EQ(Health("tandem.v1.Generation"), health::HealthCheckResponse::NOT_SERVING);
}

// Reflection's own .proto is not on this machine, so the bytes are written by hand: field 7,
// list_services, of ServerReflectionRequest.
// https://github.com/grpc/grpc/blob/master/doc/server-reflection.md
TEST_F(GrpcServerTest, ReflectionNamesTheService) {
  grpc::ClientContext context;
  SetDeadline(context);
  grpc::CompletionQueue queue;
  grpc::GenericStub stub(channel_);
  auto stream = stub.PrepareCall(
      &context, "/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo", &queue);
  void* tag = nullptr;
  bool ok = false;
  const auto next = [&] { return queue.Next(&tag, &ok) && ok; };
  stream->StartCall(nullptr);
  ASSERT_TRUE(next());
  grpc::Slice slice(std::string("\x3a\x01*"));
  stream->Write(grpc::ByteBuffer(&slice, 1), nullptr);
  ASSERT_TRUE(next());
  grpc::ByteBuffer answer;
  stream->Read(&answer, nullptr);
  ASSERT_TRUE(next());
  grpc::Slice whole;
  ASSERT_TRUE(answer.DumpToSingleSlice(&whole).ok());
  const std::string bytes(reinterpret_cast<const char*>(whole.begin()), whole.size());
  EXPECT_NE(bytes.find("tandem.v1.Generation"), std::string::npos);

  context.TryCancel();
  grpc::Status status;
  stream->Finish(&status, nullptr);
  queue.Next(&tag, &ok);
  queue.Shutdown();
  EXPECT_FALSE(queue.Next(&tag, &ok));
}

TEST(GrpcServerStart, AnAddressInUseIsUnavailable) {
  FakeEngine engine;
  auto first = GrpcServer::Start("127.0.0.1:0", ServingModelForTest(), engine, 1024);
  ASSERT_TRUE(first.ok()) << first.status();
  const auto second = GrpcServer::Start((*first)->address(), ServingModelForTest(), engine, 1024);
  EXPECT_TRUE(absl::IsUnavailable(second.status())) << second.status();
}

TEST(GrpcServerStart, AnAddressWithoutPortIsInvalid) {
  FakeEngine engine;
  EXPECT_TRUE(absl::IsInvalidArgument(
      GrpcServer::Start("localhost", ServingModelForTest(), engine, 1024).status()));
}

}  // namespace
}  // namespace tandem::coordinator
