// Requests whose answers have a form, and ids that no answer has.
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "coordinator/api/request_builder.h"
#include "tests/coordinator/api/serving_model_for_test.h"

namespace tandem::coordinator {
namespace {

GenerateParams Sound() { return {.prompt = "hi"}; }

TEST(RequestForms, RequestsOfOneFormShareItsGrammar) {
  const ServingModel model = ServingModelForTest();
  const auto grammar = [&](Constraint constraint) {
    GenerateParams params = Sound();
    params.constraint = std::move(constraint);
    return BuildRequest(params, model).value().sampling.grammar;
  };
  EXPECT_EQ(grammar({}), nullptr);
  const Constraint schema = {.kind = Constraint::Kind::kJsonSchema, .text = "{\"const\": 1}"};
  const auto first = grammar(schema);
  EXPECT_EQ(grammar(schema), first);
  EXPECT_NE(grammar({.kind = Constraint::Kind::kChoice, .choices = {schema.text}}), first);
  EXPECT_NE(grammar({.kind = Constraint::Kind::kGrammar, .text = "root ::= \"a\""}), first);
  EXPECT_NE(grammar({.kind = Constraint::Kind::kChoice, .choices = {"a", "b"}}),
            grammar({.kind = Constraint::Kind::kChoice, .choices = {"ab"}}));
  Constraint after_thoughts = schema;
  after_thoughts.reasoning = {.end = "ab"};
  EXPECT_NE(grammar(after_thoughts), first);
  EXPECT_EQ(grammar(after_thoughts), grammar(after_thoughts));
  Constraint other = schema;
  other.reasoning = {.start = "a", .end = "b"};
  EXPECT_NE(grammar(after_thoughts), grammar(other));
  // Of more than are kept the oldest goes; one in use stays.
  const auto used = grammar({.kind = Constraint::Kind::kJsonObject});
  for (size_t i = 0; i < GrammarCache::kMaxGrammars; ++i) {
    grammar({.kind = Constraint::Kind::kRegex, .text = "a{" + std::to_string(i + 1) + "}"});
  }
  EXPECT_NE(grammar(schema), first);
  EXPECT_TRUE(used->first().has_tokens);
}

TEST(RequestForms, FormsOfAllRequestsHaveABoundOfMemory) {
  ServingModel model = ServingModelForTest();
  model.grammars = std::make_shared<GrammarCache>(model.tokenizer, model.vocab_size, 100'000);
  const auto request = [&](const std::string& regex) {
    GenerateParams params = Sound();
    params.constraint = {.kind = Constraint::Kind::kRegex, .text = regex};
    return BuildRequest(params, model);
  };
  EXPECT_TRUE(request("ab").ok());
  const absl::Status status = request("a{1000}b{1000}").status();
  EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted);
  const std::string message(status.message());
  EXPECT_TRUE(message.starts_with("sampling.constraint: the form takes ")) << message;
  EXPECT_TRUE(message.ends_with(", all together at most 100000")) << message;
  EXPECT_TRUE(request("abc").ok()) << "what was refused does not count";
}

TEST(RequestForms, SuppressedTokensAreBannedButBesideAForm) {
  tokenizer::VocabularyData vocabulary = tokenizer::ByteLevelVocabulary({});
  vocabulary.suppressed = {7, 'b'};
  ServingModel model = ServingModelForTest();
  model.tokenizer = tokenizer::MakeTokenizer(std::move(vocabulary)).value();
  model.grammars = std::make_shared<GrammarCache>(model.tokenizer, model.vocab_size);
  GenerateParams params = Sound();
  EXPECT_EQ(BuildRequest(params, model).value().sampling.banned_sequences,
            (std::vector<std::vector<TokenId>>{{7}, {'b'}}));
  params.constraint = {.kind = Constraint::Kind::kRegex, .text = "[ab]"};
  const Sampling formed = BuildRequest(params, model).value().sampling;
  EXPECT_TRUE(formed.banned_sequences.empty());
  EXPECT_TRUE(step::Contains(*formed.grammar->first().allowed, 'a'));
  EXPECT_FALSE(step::Contains(*formed.grammar->first().allowed, 'b'));
}

TEST(RequestForms, AVocabularyMayBeTooLargeForForms) {
  ServingModel model = ServingModelForTest();
  model.grammars = std::make_shared<GrammarCache>(model.tokenizer, (1u << 19) + 1);
  GenerateParams params = Sound();
  params.constraint.kind = Constraint::Kind::kJsonObject;
  const absl::Status status = BuildRequest(params, model).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kUnimplemented);
  EXPECT_EQ(status.message(),
            "sampling.constraint: the vocabulary has 524289 ids, at most 524288 are supported");
}

}  // namespace
}  // namespace tandem::coordinator
