#include "coordinator/grammar/text_forms.h"

#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/coordinator/grammar/language.h"

namespace tandem::coordinator::grammar {
namespace {

using testing::HasSubstr;

std::string Refusal(const std::vector<std::string>& texts) {
  const auto grammar = GrammarOfChoices(texts);
  EXPECT_FALSE(grammar.ok());
  return std::string(grammar.status().message());
}

TEST(TextForms, Choices) {
  Language texts(GrammarOfChoices({"yes", "no", "none", "no", "\"\n\xc3\xa9"}));
  for (const char* text : {"yes", "no", "none", "\"\n\xc3\xa9"}) EXPECT_TRUE(texts.Has(text));
  for (const char* text : {"", "n", "non", "yesno"}) EXPECT_FALSE(texts.Has(text));
}

TEST(TextForms, ChoicesAreBounded) {
  EXPECT_THAT(Refusal({}), HasSubstr("0 choices"));
  EXPECT_THAT(Refusal(std::vector<std::string>(kMaxChoices + 1, "a")), HasSubstr("4097 choices"));
  EXPECT_THAT(Refusal({"a", ""}), HasSubstr("choice 1 is empty"));
  EXPECT_THAT(Refusal({"\xff"}), HasSubstr("choice 0 is not UTF-8"));
  EXPECT_THAT(Refusal({std::string(kMaxChoiceBytes, 'a'), "b"}), HasSubstr("more than 262144"));
  const auto most = GrammarOfChoices({std::string(kMaxChoiceBytes / 2, 'a'), "b"});
  ASSERT_TRUE(most.ok());
  EXPECT_TRUE(Compile(*most).ok());
}

TEST(TextForms, Regex) {
  Language texts(GrammarOfRegex("^(yes|no)!?"));
  EXPECT_TRUE(texts.Has("yes"));
  EXPECT_TRUE(texts.Has("no!"));
  EXPECT_FALSE(texts.Has("no!!"));
  EXPECT_FALSE(texts.Has("oh no"));
  EXPECT_THAT(std::string(GrammarOfRegex("(").status().message()), HasSubstr("byte 0"));
}

}  // namespace
}  // namespace tandem::coordinator::grammar
