// What schemas say of strings.
#include <nlohmann/json.hpp>
#include <random>
#include <regex>
#include <string>
#include <string_view>
#include <vector>

#include "coordinator/grammar/json_schema.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/coordinator/grammar/language.h"

namespace tandem::coordinator::grammar {
namespace {

using testing::HasSubstr;

std::string OfPattern(std::string_view pattern) {
  return nlohmann::json{{"type", "string"}, {"pattern", pattern}}.dump();
}
std::string Refusal(std::string_view schema) {
  const auto grammar = GrammarOfSchema(schema);
  EXPECT_FALSE(grammar.ok()) << schema;
  return std::string(grammar.status().message());
}

TEST(SchemaStrings, Patterns) {
  struct Case {
    std::string_view pattern;
    std::vector<std::string> valid;  // values
    std::vector<std::string> invalid;
  };
  const Case cases[] = {
      {"^[A-Z]{2}-\\d+$", {"AB-1", "ZZ-123"}, {"AB-", "xAB-1", "AB-1x", "ab-1"}},
      {"b", {"b", "abc", "\n\"b\\"}, {"", "a"}},
      {"^a", {"a", "a\"\xc3\xa9"}, {"ba"}},
      {"^[^b]*$", {"", "a\n\"\x01", "\xf0\x9f\x98\x80"}, {"b"}},
      {"^\\\\\"/\\n$", {"\\\"/\n"}, {"n"}},
      {"^[\\x00-\\x1f]$", {"\n", std::string(1, '\0'), "\x1f"}, {" ", "ab"}},
      {"", {"", "anything"}, {}},
  };
  for (const auto& [pattern, valid, invalid] : cases) {
    SCOPED_TRACE(pattern);
    Language texts(GrammarOfSchema(OfPattern(pattern)));
    for (const std::string& v : valid) EXPECT_TRUE(texts.Has(nlohmann::json(v).dump())) << v;
    for (const std::string& v : invalid) EXPECT_FALSE(texts.Has(nlohmann::json(v).dump())) << v;
  }
}

// By the regular expressions of the standard library, which are ECMA's.
TEST(SchemaStrings, WhatIsDrawnMatchesThePattern) {
  std::mt19937 random(4);
  int drawn = 0;
  for (const std::string pattern :
       {"a|^b", "^(a|\")*$", "\\\\[a-z]", "^\\W\\d?", "[^\\s]{2,3}$", "^[ -~]*\\t$"}) {
    Language texts(GrammarOfSchema(OfPattern(pattern)));
    const std::regex regex(pattern);
    for (int i = 0; i < 100; ++i) {
      const auto text = texts.Draw(random, 100);
      if (!text.has_value()) continue;
      ++drawn;
      ASSERT_TRUE(nlohmann::json::accept(*text)) << *text;
      const auto value = nlohmann::json::parse(*text).get<std::string>();
      ASSERT_TRUE(std::regex_search(value, regex)) << *text << " of " << pattern;
    }
  }
  EXPECT_GT(drawn, 150);
}

TEST(SchemaStrings, Formats) {
  struct Case {
    std::string_view format;
    std::vector<std::string> valid;
    std::vector<std::string> invalid;
  };
  const Case cases[] = {
      {"ipv4", {"0.0.0.0", "192.168.1.255"}, {"256.1.1.1", "01.1.1.1", "1.1.1", "1.1.1.1.1"}},
      {"email",
       {"a@b.co", "first.last+tag@mail.example.com"},
       {"a", "a@b", ".a@b.co", "a..b@c.de", "a@-b.co", "a b@c.de"}},
      {"hostname", {"localhost", "a-b.example.com"}, {"-a", "a.", "a..b", "a_b", ""}},
      {"uri",
       {"https://example.com", "http://a.b:80/c/d?e=f#g", "mailto:a@b.co", "urn:a:b", "x:/a%20b"},
       {"example.com", "http:", "http://a b", "http://a/%2", "1a:b"}},
      {"uuid", {"123e4567-e89b-12d3-a456-426614174000"}, {"123e4567"}},
  };
  for (const auto& [format, valid, invalid] : cases) {
    SCOPED_TRACE(format);
    Language texts(GrammarOfSchema(nlohmann::json{{"type", "string"}, {"format", format}}.dump()));
    for (const std::string& v : valid) EXPECT_TRUE(texts.Has(nlohmann::json(v).dump())) << v;
    for (const std::string& v : invalid) EXPECT_FALSE(texts.Has(nlohmann::json(v).dump())) << v;
  }
}

TEST(SchemaStrings, LongLengths) {
  Language texts(GrammarOfSchema(R"({"type": "string", "maxLength": 6000})"));
  EXPECT_TRUE(texts.Has('"' + std::string(6000, 'a') + '"'));
  EXPECT_FALSE(texts.Has('"' + std::string(6001, 'a') + '"'));
  for (const char* schema :
       {R"({"type": "string", "maxLength": 65536})", R"({"type": "string", "minLength": 65536})",
        R"({"type": "array", "maxItems": 65536})", R"({"type": "array", "minItems": 65536})",
        R"({"prefixItems": [{"type": "array"}], "minItems": 9, "maxItems": 65536})"}) {
    const auto grammar = GrammarOfSchema(schema);
    ASSERT_TRUE(grammar.ok()) << grammar.status();
    const auto network = Compile(*grammar);
    EXPECT_TRUE(network.ok()) << network.status();
  }
  EXPECT_THAT(Refusal(R"({"type": "string", "maxLength": 65537})"),
              HasSubstr("\"maxLength\" is 65537"));
  EXPECT_THAT(Refusal(R"({"type": "string", "maxLength": 1.5})"), HasSubstr("whole number"));
  EXPECT_TRUE(GrammarOfSchema(R"({"type": "string", "maxLength": 2.0})").ok());
}

TEST(SchemaStrings, Refusals) {
  EXPECT_THAT(Refusal(R"x({"pattern": "(?=a)"})x"),
              HasSubstr("#: \"pattern\": regular expression, byte 0: lookaround"));
  EXPECT_THAT(Refusal(R"({"pattern": 3})"), HasSubstr("is not a string"));
  EXPECT_THAT(Refusal(R"({"pattern": "a", "maxLength": 3})"), HasSubstr("together"));
  EXPECT_THAT(Refusal(R"({"pattern": "a", "format": "date"})"), HasSubstr("together"));
  EXPECT_THAT(Refusal(R"({"format": "date", "minLength": 3})"), HasSubstr("together"));
  EXPECT_THAT(Refusal(R"({"pattern": "a", "enum": ["a"]})"), HasSubstr("beside \"enum\""));
  EXPECT_THAT(Refusal(R"({"allOf": [{"pattern": "a"}, {"pattern": "b"}]})"),
              HasSubstr("#/allOf/1: \"pattern\" is said twice"));
}

}  // namespace
}  // namespace tandem::coordinator::grammar
