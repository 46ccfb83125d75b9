// vllm.grpc.engine.VllmEngine over a real connection.
#include <grpcpp/grpcpp.h>

#include <functional>
#include <string>
#include <vector>

#include "proto/vllm/vllm_engine.grpc.pb.h"
#include "tests/coordinator/api/grpc_server_fixture.h"

namespace tandem::coordinator {
namespace {

namespace api = vllm::grpc::engine;

api::GenerateRequest TokenPrompt(const std::string& id, bool stream) {
  api::GenerateRequest request;
  request.set_request_id(id);
  for (const TokenId token : Bytes("hi")) request.mutable_tokenized()->add_input_ids(token);
  request.set_stream(stream);
  return request;
}

class VllmServiceTest : public GrpcServerTest {
 protected:
  struct Answer {
    std::vector<api::GenerateResponse> messages;
    grpc::Status status;
  };
  // Runs a call while `play` plays the engine.
  Answer Generate(const api::GenerateRequest& request, const std::function<void()>& play) {
    grpc::ClientContext context;
    SetDeadline(context);
    auto reader = vllm_->Generate(&context, request);
    play();
    Answer answer;
    api::GenerateResponse message;
    while (reader->Read(&message)) answer.messages.push_back(message);
    answer.status = reader->Finish();
    return answer;
  }
  grpc::Status Refusal(const api::GenerateRequest& request) {
    return Generate(request, [] {}).status;
  }
  template <typename Response, typename Request>
  Response Ask(grpc::Status (api::VllmEngine::Stub::*method)(grpc::ClientContext*, const Request&,
                                                             Response*)) {
    grpc::ClientContext context;
    SetDeadline(context);
    Response response;
    const grpc::Status status = ((*vllm_).*method)(&context, Request(), &response);
    EXPECT_TRUE(status.ok()) << status.error_message();
    return response;
  }

  void SetUp() override {
    GrpcServerTest::SetUp();
    vllm_ = api::VllmEngine::NewStub(channel_);
  }

  std::unique_ptr<api::VllmEngine::Stub> vllm_;
};

TEST_F(VllmServiceTest, StreamsChunksAndThenTheEnd) {
  const Answer answer = Generate(TokenPrompt("a", true), [&] {
    auto stream = WaitForStream();
    Send(*stream, {.tokens = {'h'}, .usage = {.prompt_tokens = 2, .cached_tokens = 1}});
    engine_.Finish("a", kEos, FinishReason::kStop, {.prompt_tokens = 2, .completion_tokens = 2});
  });
  ASSERT_TRUE(answer.status.ok()) << answer.status.error_message();
  std::vector<uint32_t> ids;
  uint32_t counted = 0;
  for (size_t i = 0; i + 1 < answer.messages.size(); ++i) {
    const api::GenerateStreamChunk& chunk = answer.messages[i].chunk();
    ids.insert(ids.end(), chunk.token_ids().begin(), chunk.token_ids().end());
    counted += chunk.completion_tokens();
    EXPECT_EQ(chunk.prompt_tokens(), 2u);
  }
  EXPECT_EQ(ids, (std::vector<uint32_t>{'h', kEos}));
  EXPECT_EQ(counted, 2u);
  const api::GenerateComplete& complete = answer.messages.back().complete();
  EXPECT_EQ(complete.finish_reason(), "stop");
  EXPECT_EQ(complete.matched_token_id(), static_cast<uint32_t>(kEos));
}

TEST_F(VllmServiceTest, WithoutStreamThereIsOneMessagePerContinuation) {
  api::GenerateRequest request = TokenPrompt("a", false);
  request.mutable_sampling_params()->set_n(2);
  request.mutable_sampling_params()->set_logprobs(1);
  request.mutable_sampling_params()->set_prompt_logprobs(0);
  const TokenLogprobs logprobs{.token = {.token = 'h', .logprob = -1.5f, .rank = 2},
                               .top = {{.token = 'x', .logprob = -0.25f, .rank = 1}}};
  const Answer answer = Generate(request, [&] {
    const std::vector<Request> requests = engine_.WaitForRequests(2);
    ASSERT_EQ(requests.size(), 2u);
    Send(*requests[0].stream,
         {.prompt_logprobs = {{.token = {.token = 'i', .logprob = -2, .rank = 9}}}});
    Send(*requests[0].stream, {.tokens = {'h'}, .logprobs = {logprobs}});
    Send(*requests[0].stream, {.tokens = {'o'}, .logprobs = {logprobs}});
    Send(*engine_.Leave("a"), {.reason = FinishReason::kLength});
    engine_.Finish("a#1", 'j', FinishReason::kLength, {});
  });
  ASSERT_TRUE(answer.status.ok()) << answer.status.error_message();
  ASSERT_EQ(answer.messages.size(), 2u);
  const api::GenerateComplete& first = answer.messages[0].complete();
  EXPECT_EQ(first.index(), 0u);
  EXPECT_EQ(std::vector<uint32_t>(first.output_ids().begin(), first.output_ids().end()),
            (std::vector<uint32_t>{'h', 'o'}));
  EXPECT_EQ(first.completion_tokens(), 2u);
  EXPECT_EQ(first.finish_reason(), "length");
  EXPECT_EQ(first.output_logprobs().token_logprobs_size(), 2);
  EXPECT_EQ(first.output_logprobs().top_logprobs(1).token_ids(0), 'x');
  ASSERT_EQ(first.input_logprobs().token_logprobs_size(), 2);
  EXPECT_FALSE(first.input_logprobs().token_logprobs(0).has_value());
  EXPECT_EQ(first.input_logprobs().token_ids(0), 'h');
  EXPECT_EQ(first.input_logprobs().token_logprobs(1).value(), -2);
  EXPECT_EQ(answer.messages[1].complete().index(), 1u);
  EXPECT_EQ(answer.messages[1].complete().output_ids(0), 'j');
}

TEST_F(VllmServiceTest, TakesTheSamplingThatIsSet) {
  api::GenerateRequest request = TokenPrompt("a", false);
  api::SamplingParams& params = *request.mutable_sampling_params();
  params.set_temperature(0.5f);
  params.set_top_k(7);
  params.set_max_tokens(3);
  params.set_seed(-1);
  params.add_stop_token_ids('q');
  params.set_ignore_eos(true);
  params.set_truncate_prompt_tokens(1);
  (*params.mutable_logit_bias())[4] = 2;
  Generate(request, [&] { WaitForStream(), engine_.Finish("a", 'q', FinishReason::kStop, {}); });
  const Request added = engine_.WaitForRequests(1).at(0);
  EXPECT_EQ(added.prompt, Bytes("i"));
  EXPECT_EQ(added.sampling.temperature, 0.5f);
  EXPECT_EQ(added.sampling.top_p, 1);  // 0: unset
  EXPECT_EQ(added.sampling.penalties.repetition, 1);
  EXPECT_EQ(added.sampling.top_k, 7);
  EXPECT_EQ(added.sampling.max_tokens, 3u);
  EXPECT_EQ(added.sampling.seed, UINT64_MAX);
  EXPECT_EQ(added.sampling.end_ids, Bytes("q"));
  EXPECT_EQ(added.sampling.logit_bias.at(0), (std::pair<TokenId, float>{4, 2.0f}));
}

// Each by the one id that a text of it begins with; none: any text.
TEST_F(VllmServiceTest, TakesConstraints) {
  struct Case {
    std::function<void(api::SamplingParams&)> set;
    std::vector<TokenId> first;
  };
  const std::vector<Case> cases = {
      {[](auto&) {}, {}},
      {[](auto& s) { s.set_json_object(false); }, {}},
      {[](auto& s) { s.set_json_object(true); }, Bytes("{")},
      {[](auto& s) { s.set_json_schema(R"({"type": "array"})"); }, Bytes("[")},
      {[](auto& s) { s.set_regex("a+"); }, Bytes("a")},
      {[](auto& s) { s.set_grammar("root ::= \"c\" root | \"c\""); }, Bytes("c")},
      {[](auto& s) { s.mutable_choice()->add_choices("b"); }, Bytes("b")},
  };
  for (size_t i = 0; i < cases.size(); ++i) {
    const std::string id = std::to_string(i);
    api::GenerateRequest request = TokenPrompt(id, false);
    cases[i].set(*request.mutable_sampling_params());
    Generate(request,
             [&] { WaitForStream(i + 1), engine_.Finish(id, 'q', FinishReason::kStop, {}); });
    const auto grammar = engine_.WaitForRequests(i + 1).at(i).sampling.grammar;
    ASSERT_EQ(grammar == nullptr, cases[i].first.empty()) << i;
    if (grammar == nullptr) continue;
    step::TokenMask only(step::MaskWords(kHead));
    step::Insert(cases[i].first[0], only);
    EXPECT_EQ(*grammar->first().allowed, only) << i;
  }
}

TEST_F(VllmServiceTest, RefusesByNameWhatItDoesNotHave) {
  struct Case {
    std::function<void(api::GenerateRequest&)> spoil;
    grpc::StatusCode code;
    std::string says;
  };
  for (const Case& one : std::vector<Case>{
           {[](auto& r) { r.mutable_sampling_params()->set_grammar("root ::= a"); },
            grpc::StatusCode::INVALID_ARGUMENT,
            "sampling.constraint: grammar, line 1, byte 10: there is no rule a"},
           {[](auto& r) { r.mutable_sampling_params()->set_structural_tag("{}"); },
            grpc::StatusCode::UNIMPLEMENTED, "sampling_params.structural_tag is not supported"},
           {[](auto& r) { r.mutable_sampling_params()->mutable_choice(); },
            grpc::StatusCode::INVALID_ARGUMENT, "sampling.constraint: 0 choices, need 1 to 4096"},
           {[](auto& r) { r.mutable_mm_inputs(); }, grpc::StatusCode::UNIMPLEMENTED,
            "mm_inputs is not supported"},
           {[](auto& r) { r.set_data_parallel_rank(1); }, grpc::StatusCode::UNIMPLEMENTED,
            "a data_parallel_rank other than 0 is not supported"},
           {[](auto& r) { r.mutable_tokenized()->add_input_ids(UINT32_MAX); },
            grpc::StatusCode::INVALID_ARGUMENT, "input_ids is 4294967295, at most 2147483647"},
           {[](auto& r) { r.mutable_sampling_params()->set_logprobs(-1); },
            grpc::StatusCode::INVALID_ARGUMENT,
            "sampling.logprobs is -1, it must be from 0 to 20"}}) {
    api::GenerateRequest request = TokenPrompt("a", true);
    one.spoil(request);
    const grpc::Status status = Refusal(request);
    EXPECT_EQ(status.error_code(), one.code);
    EXPECT_EQ(status.error_message(), one.says);
  }
}

TEST_F(VllmServiceTest, RefusesAnEmptyPrompt) {
  api::GenerateRequest no_ids, no_text, nothing;
  no_ids.mutable_tokenized();
  no_text.set_text("");
  for (const api::GenerateRequest& request : {no_ids, no_text, nothing}) {
    const grpc::Status status = Refusal(request);
    EXPECT_EQ(status.error_code(), grpc::StatusCode::INVALID_ARGUMENT) << status.error_message();
  }
  EXPECT_TRUE(Ask(&api::VllmEngine::Stub::HealthCheck).healthy());
}

TEST_F(VllmServiceTest, AbortEndsARequestByItsIdAndItsStreamWithAWord) {
  api::GenerateRequest request = TokenPrompt("a", false);
  request.mutable_sampling_params()->set_n(2);
  const Answer answer = Generate(request, [&] {
    ASSERT_EQ(engine_.WaitForRequests(2).size(), 2u);
    grpc::ClientContext context;
    SetDeadline(context);
    api::AbortRequest abort;
    abort.add_request_ids("another");
    abort.add_request_ids("a");
    api::AbortResponse response;
    EXPECT_TRUE(vllm_->Abort(&context, abort, &response).ok());
  });
  EXPECT_TRUE(answer.status.ok()) << answer.status.error_message();
  ASSERT_EQ(answer.messages.size(), 2u);
  for (const auto& message : answer.messages) {
    EXPECT_EQ(message.complete().finish_reason(), "abort");
  }
  EXPECT_EQ(engine_.cancelled(), (std::vector<std::string>{"a", "a#1"}));
}

TEST_F(VllmServiceTest, SaysHowItIs) {
  EXPECT_TRUE(Ask(&api::VllmEngine::Stub::HealthCheck).healthy());
  const api::GetModelInfoResponse model = Ask(&api::VllmEngine::Stub::GetModelInfo);
  EXPECT_EQ(model.served_model_name(), "test model");
  EXPECT_EQ(model.max_context_length(), kMaxModelLen);
  EXPECT_EQ(model.vocab_size(), kHead);
  EXPECT_EQ(model.bos_token_id(), kBos);
  EXPECT_EQ(model.eos_token_ids(0), kEos);
  EXPECT_EQ(Ask(&api::VllmEngine::Stub::GetServerInfo).active_requests(), 9u);
  const api::GetLoadsResponse loads = Ask(&api::VllmEngine::Stub::GetLoads);
  ASSERT_EQ(loads.loads_size(), 1);
  EXPECT_EQ(loads.loads(0).num_running_reqs(), 4);
  EXPECT_EQ(loads.loads(0).num_waiting_reqs(), 5);
  EXPECT_TRUE(Ask(&api::VllmEngine::Stub::FlushCache).success());
  EXPECT_EQ(engine_.num_resets(), 1);
}

TEST_F(VllmServiceTest, IsNotHealthyWhileTheModelIsLoading) {
  Listen();
  vllm_ = api::VllmEngine::NewStub(channel_);
  const api::HealthCheckResponse health = Ask(&api::VllmEngine::Stub::HealthCheck);
  EXPECT_FALSE(health.healthy());
  EXPECT_EQ(health.message(), "the server is loading its model: waiting for ranks 0/2");
  EXPECT_EQ(Refusal(TokenPrompt("a", true)).error_code(), grpc::StatusCode::UNAVAILABLE);
}

}  // namespace
}  // namespace tandem::coordinator
