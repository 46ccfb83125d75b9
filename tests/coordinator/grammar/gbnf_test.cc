#include "coordinator/grammar/gbnf.h"

#include <nlohmann/json.hpp>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include "coordinator/grammar/reasoning.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/coordinator/grammar/language.h"

namespace tandem::coordinator::grammar {
namespace {

using testing::HasSubstr;

// The texts that are of a grammar, and some that are not.
struct Example {
  const char* grammar;
  std::vector<std::string> texts;
  std::vector<std::string> others;
};

TEST(Gbnf, ReadsTheNotation) {
  const Example examples[] = {
      {R"(root ::= "a" "bc" | "d")", {"abc", "d"}, {"", "a", "abcd", "ad"}},
      {R"(root ::= "" | "a")", {"", "a"}, {"aa"}},
      {"root ::= \"a\" |", {"", "a"}, {"|"}},
      {R"(root ::= [a-c-] [^x\]\n] .)",
       {"ayz", "-a\n", "cé\U0001F600"},
       {"dab", "ax!", "a]!", "ab"}},
      {R"(root ::= "\x41\u00e9\U0001F600\t\\\"\[\-")", {"Aé\U0001F600\t\\\"[-"}, {"A"}},
      {R"(root ::= "a"* "b"+ "c"? "d"{2} "e"{1,} "f"{1,2})",
       {"bddef", "aabbcddeeff"},
       {"ddef", "bdef", "bddf", "bddefff"}},
      {R"(root ::= ("a" | "b" "c")+)", {"a", "bc", "abca"}, {"", "b"}},
      {R"(root ::= "a"{ 1 , 2 } # and no more
          # root ::= "x"
)",
       {"a", "aa"},
       {"", "aaa", "x"}},
      {"root ::= \"a\" | # or\r \"b\"\r", {"a", "b"}, {""}},
      // A rule ends with its line, but not in a group, after what wants more, or before a bar.
      {"root ::=\n  first (\n\"b\"\n second\n) |\n\n \"c\"\n  | \"d\"\r\nfirst ::= \"a\"\n"
       "\nsecond::=\"e\"",
       {"abe", "c", "d"},
       {"a", "ab", "e"}},
      {"root ::= is-true | Is_2\nis-true ::= \"t\"\nIs_2 ::= \"2\"\nunused ::= \"x\"",
       {"t", "2"},
       {"x"}},
      // What nests.
      {R"g(root ::= "(" root* ")")g", {"()", "(())", "(()(()))"}, {"", "(", "())"}},
      {R"g(expr ::= term ([-+] term)*
          term ::= [0-9]+ | "(" expr ")"
          root ::= expr "=")g",
       {"1=", "(1+22)-3=", "((4))="},
       {"1", "1+=", "(1=", "-1="}},
  };
  for (const Example& example : examples) {
    Language language(GrammarOfGbnf(example.grammar));
    for (const std::string& text : example.texts) {
      EXPECT_TRUE(language.Has(text)) << example.grammar << "\nlacks " << text;
    }
    for (const std::string& text : example.others) {
      EXPECT_FALSE(language.Has(text)) << example.grammar << "\nhas " << text;
    }
  }
}

// JSON as people write it in this notation; what is drawn from it another parser reads.
constexpr char kJson[] = R"(
root   ::= object
value  ::= object | array | string | number | ("true" | "false" | "null") ws
object ::= "{" ws ( member ("," ws member)* )? "}" ws
member ::= string ":" ws value
array  ::= "[" ws ( value ("," ws value)* )? "]" ws
string ::= "\"" ( [^"\\\x00-\x1F\x7F] | "\\" (["\\/bfnrt] | "u" hex{4}) )* "\"" ws
hex    ::= [0-9a-fA-F]
number ::= "-"? ("0" | [1-9] [0-9]{0,15}) ("." [0-9]+)? ([eE] [-+]? [0-9] [1-9]{0,1})? ws
ws     ::= | " " | "\n" [ \t]{0,20}
)";

TEST(Gbnf, TextsOfAJsonGrammarAreJson) {
  Language language(GrammarOfGbnf(kJson));
  std::mt19937 random(1);
  int drawn = 0;
  for (int i = 0; i < 300; ++i) {
    const auto text = language.Draw(random);
    if (!text.has_value()) continue;
    ++drawn;
    // Half a surrogate pair is of the grammar and no JSON: \ud800 may stand alone.
    if (text->find("\\u") != std::string::npos) continue;
    EXPECT_TRUE(nlohmann::json::accept(*text)) << *text;
  }
  EXPECT_GT(drawn, 30);
  EXPECT_TRUE(language.Has(R"({"a": [1, -2.5e3, {"b": null}], "c": "\"\u00e9"})"));
  EXPECT_FALSE(language.Has(R"([1])"));
}

TEST(Gbnf, RefusesWithThePlace) {
  struct Case {
    std::string grammar;
    const char* says;
  };
  const Case cases[] = {
      {"", "the grammar has no rule root"},
      {"# nothing", "the grammar has no rule root"},
      {"a ::= \"b\"", "the grammar has no rule root"},
      {"root ::= a", "line 1, byte 10: there is no rule a"},
      {"root ::= \"x\"\nb ::= c\nc ::= b d", "line 3, byte 9: there is no rule d"},
      {"root ::= \"a\"\nroot ::= \"b\"", "line 2, byte 1: rule root is said twice"},
      {"root: \"a\"", "line 1, byte 5: need ::= after the name root"},
      {"= \"a\"", "line 1, byte 1: need the name of a rule"},
      {"root ::= \"a", "byte 10: a text without its closing quote"},
      {"root ::= [a", "byte 10: a class without its closing bracket"},
      {"root ::= [a-", "byte 10: a class without its closing bracket"},
      {"root ::= []", "byte 10: an empty class"},
      {"root ::= [^]", "byte 10: an empty class"},
      {"root ::= [z-a]", "byte 11: a range that ends before it begins"},
      {"root ::= (\"a\"", "byte 10: a parenthesis that is not closed"},
      {"root ::= \"a\")", "byte 13: a closing parenthesis too many"},
      {"root ::= (\"a\" 'b')", "byte 15: texts are in double quotes"},
      {"root ::= <think>", "byte 10: tokens are not supported"},
      {"root ::= \"a\" !<[7]>", "byte 14: tokens are not supported"},
      {"root ::= (\"a\" | b\nb ::= \"c\"", "line 2, byte 3: a rule begins, and the one before"},
      {"root ::=\nb ::= \"c\"", "line 2, byte 3: a rule begins, and the one before"},
      {"root ::= " + std::string(257, 'x'), "byte 10: a name of more than 256 bytes"},
      {"root ::= \"a\" ;", "byte 14: need a text, a class, the name of a rule, ( or ."},
      {"root ::= *", "byte 10: nothing to repeat"},
      {"root ::= \"a\"*+", "byte 14: nothing to repeat"},
      {"root ::= \"a\"{", "byte 14: need {n}, {n,} or {n,m}"},
      {"root ::= \"a\"{,2}", "byte 14: need {n}, {n,} or {n,m}"},
      {"root ::= \"a\"{2;3}", "byte 13: need {n}, {n,} or {n,m}"},
      {"root ::= \"a\"{3,2}", "byte 13: a count that ends before it begins"},
      {"root ::= \"a\"{2001}", "byte 14: a count of more than 2000"},
      {R"(root ::= "\q")", "byte 11: there is no such escape"},
      {R"(root ::= "\x4")", "byte 14: need 2 hexadecimal digits"},
      {R"(root ::= "\ud800")", "byte 11: there is no such character"},
      {R"(root ::= "\U00110000")", "byte 11: there is no such character"},
      {"root ::= \"\\", "byte 11: a backslash without what it escapes"},
      {"root ::= \"\xff\"", "byte 11: not UTF-8"},
      {std::string("root ::= ") + std::string(101, '(') + "\"a\"" + std::string(101, ')'),
       "groups nest deeper than 100"},
      {std::string(kMaxGbnfBytes + 1, ' '), "the grammar has 262145 bytes, at most 262144"},
  };
  for (const Case& one : cases) {
    const auto grammar = GrammarOfGbnf(one.grammar);
    ASSERT_FALSE(grammar.ok()) << one.grammar;
    EXPECT_EQ(grammar.status().code(), absl::StatusCode::kInvalidArgument);
    EXPECT_THAT(std::string(grammar.status().message()), HasSubstr(one.says)) << one.grammar;
  }
}

TEST(Gbnf, WhatNoAutomatonCanReadIsRefusedByTheRulesName) {
  const auto refusal = [](const Grammar& grammar) {
    return std::string(Compile(grammar).status().message());
  };
  const Grammar sums = GrammarOfGbnf("root ::= sum\nsum ::= sum? \"+\" [0-9]").value();
  EXPECT_THAT(refusal(sums), HasSubstr("rule sum of the grammar begins with itself"));
  EXPECT_THAT(refusal(WithReasoning({.end = "</think>"}, sums).value()), HasSubstr("rule sum of"));
  EXPECT_THAT(refusal(GrammarOfGbnf("root ::= \"a\" root").value()),
              HasSubstr("no string of the grammar comes to an end"));
  EXPECT_THAT(refusal(GrammarOfGbnf("root ::= ((\"a\"{2000}){2000}){2000}").value()),
              HasSubstr("with repetitions written out"));
}

// It takes as long as it is, also where many calls stand at one place.
TEST(Gbnf, LargeGrammarsOfManyAlternativesAreCompiled) {
  std::string calls = "root ::= ";
  while (calls.size() < kMaxGbnfBytes - 100) calls += "a|";
  std::string nullable = "root ::= ";
  while (nullable.size() < kMaxGbnfBytes - 100) nullable += "a\"x\"|";
  EXPECT_TRUE(Compile(GrammarOfGbnf(calls + "\"q\"\na ::= \"y\"").value()).ok());
  EXPECT_TRUE(Compile(GrammarOfGbnf(nullable + "\"q\"\na ::= \"y\" | ").value()).ok());
}

}  // namespace
}  // namespace tandem::coordinator::grammar
