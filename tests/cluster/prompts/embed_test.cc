// Embed through a real server. The model file's output matrix times the last token's state, as it
// is before it is normalised, are the reference logits; a mean is that of the states of all
// prefixes.
#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/base/check.h"
#include "common/gguf/file.h"
#include "common/tensor/dequantize.h"
#include "proto/tandem/v1/generation.grpc.pb.h"
#include "tests/cluster/golden_cases.h"
#include "tests/cluster/prompts/prompt_server.h"
#include "tests/cluster/server.h"

namespace tandem::testing {
namespace {

using Ids = std::vector<TokenId>;
using Vector = std::vector<float>;

constexpr double kMaxDiff = 1e-3;

Ids Prefix(const Ids& ids, size_t length) {
  return {ids.begin(), ids.begin() + static_cast<std::ptrdiff_t>(length)};
}

// The head of a model file: logits of a state.
class Head {
 public:
  explicit Head(const std::string& path) {
    const auto file = gguf::File::Open(path);
    TANDEM_CHECK(file.ok()) << file.status();
    const gguf::TensorInfo* tensor = file->FindTensor("output.weight");
    if (tensor == nullptr) tensor = file->FindTensor("token_embd.weight");
    columns_ = tensor->dims[0];
    matrix_.resize(tensor->values);
    tensor::Dequantize(tensor->type, tensor->data, matrix_.data(), matrix_.size());
    const std::string architecture(file->metadata().GetString("general.architecture").value());
    softcap_ = file->metadata()
                   .FindFloat(architecture + ".final_logit_softcapping")
                   .value()
                   .value_or(0.0f);
  }

  std::vector<double> Logits(const Vector& state) const {
    std::vector<double> logits;
    for (size_t row = 0; row < matrix_.size(); row += columns_) {
      double sum = 0;
      for (size_t i = 0; i < columns_; ++i) sum += double{matrix_[row + i]} * state.at(i);
      logits.push_back(softcap_ > 0 ? softcap_ * std::tanh(sum / softcap_) : sum);
    }
    return logits;
  }

 private:
  size_t columns_ = 0;
  std::vector<float> matrix_;
  double softcap_ = 0;
};

class Client {
 public:
  explicit Client(const TestServer& server)
      : stub_(v1::Generation::NewStub(
            grpc::CreateChannel(server.address(), grpc::InsecureChannelCredentials()))) {}

  // Not normalised, in the order of the inputs.
  std::vector<Vector> Embed(v1::Pooling pooling, const std::vector<Ids>& inputs) {
    v1::EmbedRequest request;
    request.set_pooling(pooling);
    request.set_normalize(false);
    for (const Ids& ids : inputs) {
      request.add_inputs()->mutable_token_ids()->mutable_ids()->Add(ids.begin(), ids.end());
    }
    grpc::ClientContext context;
    context.set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(120));
    const auto reader = stub_->Embed(&context, request);
    std::vector<Vector> all(inputs.size());
    for (v1::EmbedResponse response; reader->Read(&response);) {
      const auto index = static_cast<size_t>(response.index());
      all.at(index).assign(response.embedding().begin(), response.embedding().end());
      EXPECT_EQ(response.usage().prompt_tokens(), static_cast<int>(inputs[index].size()));
    }
    const grpc::Status status = reader->Finish();
    EXPECT_TRUE(status.ok()) << status.error_message();
    return all;
  }
  Vector Embed(v1::Pooling pooling, const Ids& input) {
    return Embed(pooling, std::vector<Ids>{input})[0];
  }

 private:
  const std::unique_ptr<v1::Generation::Stub> stub_;
};

void ExpectNear(const Vector& found, const Vector& wanted, double relative) {
  ASSERT_EQ(found.size(), wanted.size());
  double largest = 0;
  for (const float value : wanted) largest = std::max(largest, std::abs(double{value}));
  for (size_t i = 0; i < found.size(); ++i) {
    ASSERT_NEAR(found[i], wanted[i], relative * largest) << "value " << i;
  }
}

class EmbedTest : public ::testing::TestWithParam<PromptCase> {};

TEST_P(EmbedTest, ThroughTheHeadStatesAreTheReferenceLogits) {
  const GoldenModel golden = ReadArchGolden(GetParam().model);
  const Head head(golden.path);
  const auto server = StartFor(golden.path, GetParam());
  ASSERT_NE(server, nullptr);
  Client client(*server);
  for (const GoldenCase& one : golden.cases) {
    SCOPED_TRACE(absl::StrCat("prompt of ", one.tokens.size(), " tokens"));
    std::vector<Ids> prefixes;
    for (const int position : one.positions) {
      if (prefixes.size() == 12) break;
      prefixes.push_back(Prefix(one.tokens, static_cast<size_t>(position) + 1));
    }
    const std::vector<Vector> states = client.Embed(v1::POOLING_LAST, prefixes);
    for (size_t row = 0; row < states.size(); ++row) {
      const std::vector<double> logits = head.Logits(states[row]);
      ASSERT_LE(one.logits[row].size(), logits.size());  // the head may be padded
      for (size_t id = 0; id < one.logits[row].size(); ++id) {
        ASSERT_NEAR(logits[id], one.logits[row][id], kMaxDiff)
            << "id " << id << " after " << prefixes[row].size() << " tokens";
      }
    }
  }
}

TEST_P(EmbedTest, AMeanIsThatOfTheStatesOfAllPrefixes) {
  const GoldenModel golden = ReadArchGolden(GetParam().model);
  const auto server = StartFor(golden.path, GetParam());
  ASSERT_NE(server, nullptr);
  Client client(*server);
  const Ids ids =
      Prefix(golden.cases.back().tokens, std::min<size_t>(golden.cases.back().tokens.size(), 40));
  std::vector<Ids> prefixes;
  for (size_t length = 1; length <= ids.size(); ++length) prefixes.push_back(Prefix(ids, length));
  const std::vector<Vector> states = client.Embed(v1::POOLING_LAST, prefixes);
  std::vector<double> sum(states[0].size());
  for (const Vector& state : states) {
    for (size_t i = 0; i < sum.size(); ++i) sum[i] += state[i];
  }
  Vector mean;
  for (const double value : sum) {
    mean.push_back(static_cast<float>(value / static_cast<double>(states.size())));
  }
  ExpectNear(client.Embed(v1::POOLING_MEAN, ids), mean, 1e-5);
  ExpectNear(client.Embed(v1::POOLING_CLS, ids), states[0], 1e-5);
  ExpectNear(client.Embed(v1::POOLING_UNSPECIFIED, ids), states.back(), 1e-5);
}

INSTANTIATE_TEST_SUITE_P(Models, EmbedTest, ::testing::ValuesIn(AllPromptCases()), PromptCaseName);

TEST(EmbedBitsTest, ChunksDoNotChangeThem) {
  const GoldenModel golden = ReadArchGolden("llama");
  std::vector<Vector> found;
  for (const char* chunk : {"512", "7", "1"}) {
    const auto server = TestServer::Start(golden.path, {"--chunked-prefill-size", chunk});
    ASSERT_NE(server, nullptr);
    found.push_back(Client(*server).Embed(v1::POOLING_MEAN, golden.cases.back().tokens));
  }
  EXPECT_EQ(found[1], found[0]);
  EXPECT_EQ(found[2], found[0]);
}

TEST(EmbedRecoveryTest, AKilledWorkerChangesNoVector) {
  const GoldenModel golden = ReadArchGolden("llama");
  const auto server = TestServer::Start(
      golden.path, {"--tensor-parallel-size", "2", "--chunked-prefill-size", "4"});
  ASSERT_NE(server, nullptr);
  std::vector<Ids> inputs;
  for (TokenId id = 0; id < 16; ++id) {
    inputs.push_back(golden.cases.back().tokens);
    inputs.back().front() = id;
  }
  Client client(*server);
  const auto undisturbed = client.Embed(v1::POOLING_MEAN, inputs);
  AskThroughALoss(*server, [&] { EXPECT_EQ(client.Embed(v1::POOLING_MEAN, inputs), undisturbed); });
}

}  // namespace
}  // namespace tandem::testing
