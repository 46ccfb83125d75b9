// tandem.v1.Generation over a real gRPC connection.
#include <future>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/match.h"
#include "tests/coordinator/api/grpc_server_fixture.h"
#include "tests/coordinator/api/slow_tokenizer.h"

namespace tandem::coordinator {
namespace {

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

TEST_F(GrpcServerTest, ContinuationsComeInOneStream) {
  v1::GenerateRequest request = Prompt("a");
  request.mutable_sampling()->set_n(3);
  request.mutable_sampling()->set_seed(5);
  ClientCall call(*stub_, request);
  const std::vector<Request> requests = engine_.WaitForRequests(3);
  ASSERT_EQ(requests.size(), 3u);
  EXPECT_EQ(requests[0].id, "a");
  EXPECT_EQ(requests[0].sampling.seed, 5u);
  EXPECT_NE(requests[1].sampling.seed, requests[2].sampling.seed);
  Send(*requests[1].stream, {.tokens = {'x'}});
  const auto first = call.Read();
  ASSERT_TRUE(first.has_value());
  EXPECT_EQ(first->index(), 1);
  EXPECT_EQ(first->text(), "x");
  EXPECT_EQ(first->request_id(), "a");
  for (size_t i = 0; i < 3; ++i) {
    engine_.Finish(requests[i].id, static_cast<TokenId>('p' + i), FinishReason::kLength,
                   {.completion_tokens = static_cast<uint32_t>(i + 1)});
  }
  std::map<int, v1::GenerateResponse> last;
  while (auto response = call.Read()) {
    EXPECT_EQ(response->finish_reason(), v1::FINISH_REASON_LENGTH);
    EXPECT_TRUE(last.emplace(response->index(), *response).second);
  }
  ASSERT_EQ(last.size(), 3u);
  EXPECT_EQ(last[0].text(), "p");
  EXPECT_EQ(last[2].text(), "r");
  EXPECT_EQ(last[2].usage().completion_tokens(), 3);
  EXPECT_TRUE(call.Finish().ok());
  EXPECT_TRUE(engine_.cancelled().empty());
}

TEST_F(GrpcServerTest, AFailedContinuationEndsTheOthers) {
  v1::GenerateRequest request = Prompt("a");
  request.mutable_sampling()->set_n(3);
  ClientCall call(*stub_, request);
  ASSERT_EQ(engine_.WaitForRequests(3).size(), 3u);
  engine_.Fail("a#1", absl::InternalError("row 7"));
  const grpc::Status status = call.Finish();
  EXPECT_EQ(status.error_code(), grpc::StatusCode::INTERNAL);
  EXPECT_EQ(status.error_message(), "row 7");
  EXPECT_EQ(engine_.WaitForCancels(2), (std::vector<std::string>{"a", "a#2"}));
}

TEST_F(GrpcServerTest, WhereOneContinuationIsRefusedNoneRuns) {
  ClientCall other(*stub_, Prompt("a#1"));
  ASSERT_EQ(engine_.WaitForRequests(1).size(), 1u);
  v1::GenerateRequest request = Prompt("a");
  request.mutable_sampling()->set_n(3);
  EXPECT_EQ(ClientCall(*stub_, request).Finish().error_code(), grpc::StatusCode::ALREADY_EXISTS);
  EXPECT_EQ(engine_.WaitForRequests(1).size(), 1u);
  EXPECT_TRUE(engine_.cancelled().empty());
}

TEST_F(GrpcServerTest, ResetsThePrefixCache) {
  grpc::ClientContext context, refused;
  SetDeadline(context);
  SetDeadline(refused);
  v1::ResetPrefixCacheResponse response;
  EXPECT_TRUE(stub_->ResetPrefixCache(&context, {}, &response).ok());
  EXPECT_EQ(engine_.num_resets(), 1);
  engine_.Refuse(absl::UnavailableError("no"));
  EXPECT_EQ(stub_->ResetPrefixCache(&refused, {}, &response).error_code(),
            grpc::StatusCode::UNAVAILABLE);
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

TEST_F(GrpcServerTest, ControlTokensGiveTheirNamesOnRequest) {
  v1::GenerateRequest request = Prompt("a");
  request.set_skip_special_tokens(false);
  ClientCall call(*stub_, request);
  auto stream = WaitForStream();
  EXPECT_TRUE(Send(*stream, {.tokens = {kBos}}));
  EXPECT_TRUE(Send(*stream, {.tokens = {'i'}}));
  engine_.Finish("a", 'j', FinishReason::kLength, Usage{});
  EXPECT_EQ(call.ReadAll().text(), "<|bos|>ij");
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
  EXPECT_EQ(text.token_bytes_size(), 0);

  grpc::ClientContext with_bytes;
  SetDeadline(with_bytes);
  ids.set_want_token_bytes(true);
  ASSERT_TRUE(stub_->Detokenize(&with_bytes, ids, &text).ok());
  ASSERT_EQ(text.token_bytes_size(), 4);
  EXPECT_EQ(text.token_bytes(0), "<|bos|>");
  EXPECT_EQ(text.token_bytes(3), "\xa4");

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
  EXPECT_EQ(values, (std::vector<int64_t>{1,  2,  3, 13, 14, 4,  5,  12, 6,  16, 15,
                                          19, 20, 7, 8,  9,  17, 10, 11, 18, 21}));
}

TEST_F(GrpcServerTest, LongTextsAreRefusedByTheirSize) {
  grpc::ClientContext context, too_long_context, far_too_long_context;
  v1::TokenizeRequest request;
  v1::TokenizeResponse response;
  request.set_text(std::string(1 << 19, 'x'));
  SetDeadline(context);
  EXPECT_TRUE(stub_->Tokenize(&context, request, &response).ok());
  EXPECT_EQ(response.ids_size(), (1 << 19) + 1);
  request.set_text(std::string((1 << 20) + 1, 'x'));
  grpc::Status status = stub_->Tokenize(&too_long_context, request, &response);
  EXPECT_EQ(status.error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_EQ(status.error_message(), "text has 1048577 bytes, at most 1048576 are tokenized");
  request.set_text(std::string(3 << 20, 'x'));
  status = stub_->Tokenize(&far_too_long_context, request, &response);
  EXPECT_EQ(status.error_code(), grpc::StatusCode::INVALID_ARGUMENT);
}

// Prompts that wait for the tokenizer, up to the bound in bytes: ten of 3 MiB fit 32 MiB.
TEST_F(GrpcServerTest, TheBytesOfWaitingRequestsAreBounded) {
  ServingModel model = ServingModelForTest();
  auto slow = std::make_shared<SlowTokenizer>(model.tokenizer);
  model.tokenizer = slow;
  Start(std::move(model));
  std::vector<std::unique_ptr<ClientCall>> calls;
  for (int i = 0; i < 11; ++i) {
    v1::GenerateRequest request = Prompt(std::to_string(i));
    request.set_text(std::string(3 << 20, 'x'));
    calls.push_back(std::make_unique<ClientCall>(*stub_, request));
  }
  slow->AwaitStart();
  // Whichever came last is refused while the others wait for the tokenizer.
  std::promise<grpc::Status> first_end;
  std::once_flag first;
  std::vector<std::thread> readers;
  for (auto& call : calls) {
    readers.emplace_back([&] {
      const grpc::Status status = call->Finish();
      std::call_once(first, [&] { first_end.set_value(status); });
    });
  }
  const grpc::Status refused = first_end.get_future().get();
  EXPECT_EQ(refused.error_code(), grpc::StatusCode::RESOURCE_EXHAUSTED);
  EXPECT_NE(refused.error_message().find("of at most 33554432"), std::string::npos)
      << refused.error_message();
  for (auto& call : calls) call->Cancel();
  slow->Release();
  for (std::thread& reader : readers) reader.join();
}

}  // namespace
}  // namespace tandem::coordinator
