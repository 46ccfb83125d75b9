// Answers of a real server that have a form: of a model with random weights, whose tokens would be
// anything, drawn at a high temperature beside answers without.
#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>

#include <memory>
#include <nlohmann/json.hpp>
#include <regex>
#include <string>
#include <vector>

#include "proto/tandem/v1/generation.grpc.pb.h"
#include "tests/cluster/golden_cases.h"
#include "tests/cluster/server.h"

namespace tandem::testing {
namespace {

constexpr auto kPatience = std::chrono::seconds(60);

constexpr char kSchema[] = R"({
  "type": "object",
  "properties": {
    "name": {"type": "string", "maxLength": 12},
    "age": {"type": "integer", "minimum": 0, "maximum": 120},
    "tags": {"type": "array", "items": {"enum": ["red", "green", 7, null]}, "maxItems": 3}
  },
  "required": ["name", "age"]
})";

struct Answer {
  std::string text;
  v1::FinishReason reason = v1::FINISH_REASON_UNSPECIFIED;
  grpc::Status status;
};

// A request in flight.
class Call {
 public:
  Call(v1::Generation::Stub& stub, const v1::GenerateRequest& request) {
    context_.set_deadline(std::chrono::system_clock::now() + kPatience);
    reader_ = stub.Generate(&context_, request);
  }
  Answer Wait() {
    Answer answer;
    v1::GenerateResponse response;
    while (reader_->Read(&response)) {
      answer.text += response.text();
      if (response.finish_reason() != v1::FINISH_REASON_UNSPECIFIED) {
        answer.reason = response.finish_reason();
      }
    }
    answer.status = reader_->Finish();
    return answer;
  }

 private:
  grpc::ClientContext context_;
  std::unique_ptr<grpc::ClientReader<v1::GenerateResponse>> reader_;
};

class StructuredOutputTest : public ::testing::Test {
 protected:
  void SetUp() override {
    server_ = TestServer::Start(GoldenPath("arch/llama/model.gguf"),
                                {"--tensor-parallel-size", "2", "--max-num-seqs", "4"});
    ASSERT_NE(server_, nullptr);
    stub_ = v1::Generation::NewStub(
        grpc::CreateChannel(server_->address(), grpc::InsecureChannelCredentials()));
  }

  static v1::GenerateRequest Request(uint64_t seed) {
    v1::GenerateRequest request;
    request.set_text("once upon");
    request.mutable_sampling()->set_seed(seed);
    request.mutable_sampling()->set_temperature(1.5f);
    request.mutable_sampling()->set_max_tokens(400);
    return request;
  }
  Answer Generate(const v1::GenerateRequest& request) { return Call(*stub_, request).Wait(); }

  std::unique_ptr<TestServer> server_;
  std::unique_ptr<v1::Generation::Stub> stub_;
};

void ExpectOfSchema(const std::string& text) {
  const auto value = nlohmann::json::parse(text, nullptr, /*allow_exceptions=*/false);
  ASSERT_TRUE(value.is_object()) << text;
  EXPECT_TRUE(value.at("name").is_string()) << text;
  EXPECT_GE(value.at("age").get<int>(), 0) << text;
  EXPECT_LE(value.at("age").get<int>(), 120) << text;
  if (!value.contains("tags")) return;
  EXPECT_LE(value.at("tags").size(), 3u) << text;
  for (const auto& tag : value.at("tags")) {
    EXPECT_TRUE(tag == "red" || tag == "green" || tag == 7 || tag.is_null()) << text;
  }
}

TEST_F(StructuredOutputTest, JsonOfASchemaBesideOthers) {
  std::vector<std::unique_ptr<Call>> calls;
  for (uint64_t seed = 0; seed < 24; ++seed) {
    v1::GenerateRequest request = Request(seed);
    if (seed % 3 != 2) request.mutable_sampling()->set_json_schema(kSchema);
    if (seed % 3 == 2) request.mutable_sampling()->set_max_tokens(20);
    if (seed % 6 == 1) request.mutable_sampling()->set_frequency_penalty(0.5f);
    calls.push_back(std::make_unique<Call>(*stub_, request));
  }
  for (size_t i = 0; i < calls.size(); ++i) {
    const Answer answer = calls[i]->Wait();
    ASSERT_TRUE(answer.status.ok()) << answer.status.error_message();
    if (i % 3 == 2) continue;
    EXPECT_EQ(answer.reason, v1::FINISH_REASON_STOP);
    ExpectOfSchema(answer.text);
  }
}

TEST_F(StructuredOutputTest, TheSameSeedGivesTheSameTextAloneAndBesideOthers) {
  v1::GenerateRequest request = Request(5);
  request.mutable_sampling()->set_json_schema(kSchema);
  const Answer alone = Generate(request);
  std::vector<std::unique_ptr<Call>> calls;
  for (int i = 0; i < 4; ++i) {
    calls.push_back(std::make_unique<Call>(*stub_, i == 2 ? request : Request(7)));
  }
  for (int i = 0; i < 4; ++i) {
    const Answer answer = calls[static_cast<size_t>(i)]->Wait();
    if (i == 2) {
      EXPECT_EQ(answer.text, alone.text);
    }
  }
}

// Of random weights: the thoughts end where a letter happens to be.
TEST_F(StructuredOutputTest, TheFormIsThatOfTheAnswerAfterThoughts) {
  for (uint64_t seed = 0; seed < 12; ++seed) {
    v1::GenerateRequest request = Request(seed);
    request.mutable_sampling()->set_json_schema(kSchema);
    request.mutable_sampling()->mutable_reasoning()->set_end("e");
    const Answer answer = Generate(request);
    ASSERT_TRUE(answer.status.ok()) << answer.status.error_message();
    const size_t end = answer.text.find('e');
    ASSERT_NE(end, std::string::npos) << answer.text;
    EXPECT_EQ(answer.reason, v1::FINISH_REASON_STOP);
    ExpectOfSchema(answer.text.substr(end + 1));
  }
}

TEST_F(StructuredOutputTest, RegularExpressionsChoicesAndObjects) {
  for (uint64_t seed = 0; seed < 6; ++seed) {
    v1::GenerateRequest request = Request(seed);
    request.mutable_sampling()->set_regex(R"([a-z]{2,5}@(home|work)\.\d+)");
    request.mutable_sampling()->set_max_tokens(60);
    const Answer mail = Generate(request);
    EXPECT_TRUE(std::regex_match(mail.text, std::regex(mail.reason == v1::FINISH_REASON_STOP
                                                           ? R"([a-z]{2,5}@(home|work)\.\d+)"
                                                           : R"([a-z]{2,5}@(home|work)\.\d*)")))
        << mail.text;
    request.mutable_sampling()->mutable_choice()->add_texts("yes");
    request.mutable_sampling()->mutable_choice()->add_texts("no, never");
    const Answer choice = Generate(request);
    EXPECT_TRUE(choice.text == "yes" || choice.text == "no, never") << choice.text;
    EXPECT_EQ(choice.reason, v1::FINISH_REASON_STOP);
    request.mutable_sampling()->set_json_object(true);
    request.mutable_sampling()->set_max_tokens(400);
    const Answer object = Generate(request);
    ASSERT_TRUE(object.status.ok()) << object.status.error_message();
    EXPECT_EQ(object.text.substr(0, 1), "{");
    if (object.reason == v1::FINISH_REASON_STOP) {
      EXPECT_TRUE(nlohmann::json::parse(object.text, nullptr, false).is_object()) << object.text;
    }
  }
}

// Brackets in brackets, which no regular expression can count.
TEST_F(StructuredOutputTest, Grammars) {
  for (uint64_t seed = 0; seed < 6; ++seed) {
    v1::GenerateRequest request = Request(seed);
    request.mutable_sampling()->set_grammar(
        "root ::= list \".\"\nlist ::= \"[\" ( item (\",\" item)* )? \"]\"\n"
        "item ::= list | [a-z]{1,6}  # of either kind\n");
    request.mutable_sampling()->set_max_tokens(200);
    const Answer answer = Generate(request);
    ASSERT_TRUE(answer.status.ok()) << answer.status.error_message();
    int depth = 0;
    for (const char c : answer.text) {
      EXPECT_TRUE(c == '.' || depth > 0 || c == '[') << answer.text;
      depth += (c == '[' ? 1 : 0) - (c == ']' ? 1 : 0);
    }
    if (answer.reason != v1::FINISH_REASON_STOP) continue;
    EXPECT_EQ(depth, 0) << answer.text;
    EXPECT_EQ(answer.text.find('.'), answer.text.size() - 1) << answer.text;
  }
}

TEST_F(StructuredOutputTest, RefusesWhatItCannotKeepTo) {
  v1::GenerateRequest request = Request(1);
  request.mutable_sampling()->set_json_schema(R"({"type": "object", "minProperties": 3})");
  const Answer answer = Generate(request);
  EXPECT_EQ(answer.status.error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_EQ(answer.status.error_message(),
            "sampling.constraint: JSON schema, #: \"minProperties\" is not supported");
}

}  // namespace
}  // namespace tandem::testing
