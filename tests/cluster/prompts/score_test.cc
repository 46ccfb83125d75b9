// Score through a real server: log-probabilities of every golden model's tokens against the
// log-softmax of the reference logits, and against themselves when a worker is killed.
#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "proto/tandem/v1/generation.grpc.pb.h"
#include "tests/cluster/golden_cases.h"
#include "tests/cluster/prompts/prompt_server.h"
#include "tests/cluster/server.h"

namespace tandem::testing {
namespace {

using Ids = std::vector<TokenId>;

constexpr double kMaxDiff = 1e-3;

std::vector<double> LogSoftmax(const std::vector<float>& logits) {
  const double largest = *std::max_element(logits.begin(), logits.end());
  double sum = 0;
  for (const float logit : logits) sum += std::exp(logit - largest);
  std::vector<double> logprobs(logits.begin(), logits.end());
  for (double& value : logprobs) value -= largest + std::log(sum);
  return logprobs;
}

Ids Join(const Ids& one, const Ids& other) {
  Ids all = one;
  all.insert(all.end(), other.begin(), other.end());
  return all;
}

// One answer per continuation, in their order.
class Client {
 public:
  explicit Client(const TestServer& server)
      : stub_(v1::Generation::NewStub(
            grpc::CreateChannel(server.address(), grpc::InsecureChannelCredentials()))) {}

  std::vector<v1::ScoreResponse> Score(const Ids& prompt, const std::vector<Ids>& continuations) {
    v1::ScoreRequest request;
    request.mutable_token_ids()->mutable_ids()->Add(prompt.begin(), prompt.end());
    for (const Ids& ids : continuations) {
      request.add_continuations()->mutable_token_ids()->mutable_ids()->Add(ids.begin(), ids.end());
    }
    grpc::ClientContext context;
    context.set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(120));
    const auto reader = stub_->Score(&context, request);
    std::vector<v1::ScoreResponse> answers(continuations.size());
    for (v1::ScoreResponse response; reader->Read(&response);) {
      answers.at(static_cast<size_t>(response.index())).MergeFrom(response);
    }
    const grpc::Status status = reader->Finish();
    EXPECT_TRUE(status.ok()) << status.error_message();
    return answers;
  }

 private:
  const std::unique_ptr<v1::Generation::Stub> stub_;
};

void CheckSum(const v1::ScoreResponse& answer, const Ids& continuation) {
  ASSERT_EQ(static_cast<size_t>(answer.tokens_size()), continuation.size());
  double sum = 0;
  bool is_greedy = true;
  for (int i = 0; i < answer.tokens_size(); ++i) {
    EXPECT_EQ(answer.tokens(i).token_id(), continuation[static_cast<size_t>(i)]);
    sum += answer.tokens(i).logprob();
    is_greedy &= answer.tokens(i).is_greedy();
  }
  EXPECT_DOUBLE_EQ(answer.logprob(), sum);
  EXPECT_EQ(answer.is_greedy(), is_greedy);
}

class ScoreTest : public ::testing::TestWithParam<PromptCase> {};

TEST_P(ScoreTest, IsTheLogSoftmaxOfTheReferenceLogits) {
  const GoldenModel golden = ReadArchGolden(GetParam().model);
  const auto server = StartFor(golden.path, GetParam());
  ASSERT_NE(server, nullptr);
  Client client(*server);
  for (const GoldenCase& one : golden.cases) {
    SCOPED_TRACE(absl::StrCat("prompt of ", one.tokens.size(), " tokens"));
    // The row of position p is of the token after it.
    const Ids all = Join(one.tokens, {one.greedy.front()});
    const auto whole = client.Score({all.front()}, {{all.begin() + 1, all.end()}});
    ASSERT_NO_FATAL_FAILURE(CheckSum(whole[0], {all.begin() + 1, all.end()}));
    for (size_t row = 0; row < one.positions.size(); ++row) {
      const int position = one.positions[row];
      const std::vector<double> logprobs = LogSoftmax(one.logits[row]);
      const v1::TokenScore& score = whole[0].tokens(position);
      EXPECT_NEAR(score.logprob(), logprobs.at(static_cast<size_t>(score.token_id())), kMaxDiff);
      const double best = *std::max_element(logprobs.begin(), logprobs.end());
      if (score.is_greedy()) {
        EXPECT_NEAR(score.logprob(), best, kMaxDiff);
      } else {
        EXPECT_LT(score.logprob(), best + kMaxDiff);
      }
      EXPECT_EQ(score.is_greedy(), score.rank() == 1);
    }
    // What the reference generates is greedy, and what differs is not.
    Ids other = one.greedy;
    other[1] = other[1] == 5 ? 6 : 5;
    const auto greedy = client.Score(one.tokens, {one.greedy, other, {one.greedy.front()}});
    ASSERT_NO_FATAL_FAILURE(CheckSum(greedy[0], one.greedy));
    ASSERT_NO_FATAL_FAILURE(CheckSum(greedy[1], other));
    EXPECT_TRUE(greedy[0].is_greedy());
    EXPECT_FALSE(greedy[1].is_greedy());
    EXPECT_TRUE(greedy[1].tokens(0).is_greedy());
    EXPECT_EQ(greedy[2].logprob(), greedy[0].tokens(0).logprob());
    EXPECT_EQ(greedy[2].usage().prompt_tokens(), static_cast<int>(one.tokens.size()) + 1);
  }
}

INSTANTIATE_TEST_SUITE_P(Models, ScoreTest, ::testing::ValuesIn(AllPromptCases()), PromptCaseName);

TEST(ScoreRecoveryTest, AKilledWorkerChangesNoScore) {
  const GoldenModel golden = ReadArchGolden("llama");
  const auto server = TestServer::Start(
      golden.path, {"--tensor-parallel-size", "2", "--chunked-prefill-size", "4"});
  ASSERT_NE(server, nullptr);
  const GoldenCase& one = golden.cases.back();
  std::vector<Ids> continuations;
  for (TokenId id = 0; id < 16; ++id) continuations.push_back(Join({id}, one.greedy));
  Client client(*server);
  const auto undisturbed = client.Score(one.tokens, continuations);
  AskThroughALoss(*server, [&] {
    const auto again = client.Score(one.tokens, continuations);
    for (size_t i = 0; i < continuations.size(); ++i) {
      EXPECT_EQ(again[i].logprob(), undisturbed[i].logprob()) << "continuation " << i;
    }
  });
}

}  // namespace
}  // namespace tandem::testing
