#include "coordinator/grammar/json_schema.h"

#include <nlohmann/json.hpp>
#include <random>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/coordinator/grammar/language.h"

namespace tandem::coordinator::grammar {
namespace {

using testing::HasSubstr;

std::string Refusal(std::string_view schema) {
  const auto grammar = GrammarOfSchema(schema);
  if (grammar.ok()) return std::string(Compile(*grammar).status().message());
  return std::string(grammar.status().message());
}

void ExpectTexts(std::string_view schema, const std::vector<std::string>& valid,
                 const std::vector<std::string>& invalid) {
  Language texts(GrammarOfSchema(schema));
  for (const std::string& text : valid) EXPECT_TRUE(texts.Has(text)) << schema << ": " << text;
  for (const std::string& text : invalid) EXPECT_FALSE(texts.Has(text)) << schema << ": " << text;
}

TEST(JsonSchema, AnyObject) {
  Language texts(GrammarOfAnyObject());
  EXPECT_TRUE(texts.Has(R"({"a": [1, {"b": null}]})"));
  EXPECT_TRUE(texts.Has("{}"));
  EXPECT_FALSE(texts.Has("[]"));
}

TEST(JsonSchema, Types) {
  ExpectTexts(R"({"type": "boolean"})", {"true", "false"}, {"null", "1"});
  ExpectTexts(R"({"type": "null"})", {"null"}, {"0"});
  ExpectTexts(R"({"type": "integer"})", {"0", "-12"}, {"1.0", "\"1\""});
  ExpectTexts(R"({"type": "number"})", {"0", "-1.5e3"}, {"true"});
  ExpectTexts(R"({"type": "string"})", {R"("")", R"("a\"b")"}, {"a"});
  ExpectTexts(R"({"type": ["string", "null"]})", {R"("a")", "null"}, {"1"});
  ExpectTexts("true", {"1", R"({"a": []})"}, {"{"});
  ExpectTexts(R"({"description": "anything"})", {"[1, true]"}, {""});
}

TEST(JsonSchema, ObjectsInOrder) {
  const char* const schema = R"({"type": "object", "properties": {
      "name": {"type": "string"}, "age": {"type": "integer"}, "tags": {"type": "array"}},
      "required": ["age"]})";
  ExpectTexts(schema,
              {R"({"age":1})", R"({"name": "a", "age": 1})", R"({"age": 1, "tags": []})",
               "{\n  \"name\": \"a\",\n  \"age\": 1,\n  \"tags\": [\"x\"]\n}"},
              {"{}", R"({"name": "a"})", R"({"age": 1, "name": "a"})", R"({"age": 1, "b": 2})",
               R"({"age": 1,})", R"({"age": 1, "age": 1})", R"({, "age": 1})"});
}

TEST(JsonSchema, ObjectsOfOptionalMembers) {
  const char* const schema =
      R"({"properties": {"a": {"const": 1}, "b": {"const": 2}, "c": {"const": 3}}})";
  ExpectTexts(schema,
              {"{}", R"({"a":1})", R"({"b":2})", R"({"c":3})", R"({"a":1,"b":2})",
               R"({"a":1,"c":3})", R"({"b":2,"c":3})", R"({"a":1,"b":2,"c":3})"},
              {R"({"c":3,"a":1})", R"({"a":2})", R"({"a":1,,"c":3})"});
}

TEST(JsonSchema, OtherMembers) {
  const char* const schema = R"({"type": "object", "properties": {"a": {"type": "null"}},
      "additionalProperties": {"type": "integer"}})";
  ExpectTexts(schema,
              {"{}", R"({"a": null})", R"({"b": 1})", R"({"a": null, "b": 1, "ab": 2, "": 3})"},
              {R"({"a": 1})", R"({"b": null})", R"({"b": 1, "a": null})"});
  ExpectTexts(R"({"type": "object"})", {"{}", R"({"b": {"c": []}})"}, {"1"});
  ExpectTexts(R"({"type": "object", "required": ["x"]})", {R"({"x": 1, "y": 2})"}, {"{}"});
  EXPECT_THAT(Refusal(R"({"properties": {}, "required": ["x"]})"), HasSubstr("no string"));
}

TEST(JsonSchema, Arrays) {
  ExpectTexts(R"({"type": "array", "items": {"type": "integer"}})", {"[]", "[1]", "[1, 2,3]"},
              {"[true]", "[1,]"});
  ExpectTexts(R"({"type": "array", "items": {"const": 1}, "minItems": 1, "maxItems": 2})",
              {"[1]", "[1, 1]"}, {"[]", "[1,1,1]"});
  const char* const tuple = R"({"prefixItems": [{"const": 1}, {"const": 2}], "items": {"const": 3},
      "minItems": 1, "maxItems": 4})";
  ExpectTexts(tuple, {"[1]", "[1,2]", "[1,2,3]", "[1,2,3,3]"},
              {"[]", "[2]", "[1,3]", "[1,2,3,3,3]"});
  ExpectTexts(R"({"items": [{"const": 1}], "additionalItems": false})", {"[]", "[1]"}, {"[1,1]"});
  ExpectTexts(R"({"prefixItems": [{"const": 1}], "items": false, "minItems": 1})", {"[1]"}, {"[]"});
}

TEST(JsonSchema, StringsAndNumbers) {
  ExpectTexts(R"({"type": "string", "minLength": 2, "maxLength": 3})", {R"("ab")", R"("abc")"},
              {R"("a")", R"("abcd")"});
  ExpectTexts(R"({"type": "integer", "minimum": 1, "exclusiveMaximum": 10})", {"1", "9"},
              {"0", "10", "-1"});
  ExpectTexts(R"({"type": "integer", "exclusiveMinimum": 0.5, "maximum": 2.5})", {"1", "2"},
              {"0", "3"});
  ExpectTexts(R"({"type": "string", "format": "date"})", {R"("2026-02-28")", R"("2026-12-31")"},
              {R"("2026-02-30")", R"("2026-00-10")", R"("2026-1-1")"});
  ExpectTexts(R"({"type": "string", "format": "date-time"})",
              {R"("2026-11-28T09:05:59Z")", R"("2026-11-28T23:00:00.25+01:30")"},
              {R"("2026-11-28 09:05:59Z")", R"("2026-11-28T24:00:00Z")"});
  ExpectTexts(R"({"type": "string", "format": "color"})", {R"("anything")"}, {"1"});
}

TEST(JsonSchema, Values) {
  ExpectTexts(R"({"enum": ["a", 1, null, {"b": [1, "\n"]}]})",
              {R"("a")", "1", "null", R"({"b":[1,"\n"]})"}, {R"("b")", "2"});
  ExpectTexts(R"({"type": "string", "enum": ["a", 1]})", {R"("a")"}, {"1"});
  ExpectTexts(R"({"const": "é\"\\"})", {R"("é\"\\")"}, {R"("e")"});
}

TEST(JsonSchema, Choices) {
  ExpectTexts(R"({"anyOf": [{"type": "integer"}, {"type": "null"}]})", {"1", "null"}, {"true"});
  const char* const either =
      R"({"type": "object", "properties": {"a": {"const": 1}, "b": {"const": 2}},
      "anyOf": [{"required": ["a"]}, {"required": ["b"]}]})";
  ExpectTexts(either, {R"({"a":1})", R"({"b":2})", R"({"a":1,"b":2})"}, {"{}"});
}

TEST(JsonSchema, All) {
  const char* const both = R"({"allOf": [{"$ref": "#/$defs/base"},
      {"properties": {"b": {"const": 2}}, "required": ["b"]}],
      "$defs": {"base": {"type": "object", "properties": {"a": {"const": 1}}, "required": ["a"]}}})";
  ExpectTexts(both, {R"({"a":1,"b":2})"}, {R"({"a":1})", R"({"b":2})"});
  EXPECT_THAT(Refusal(R"({"allOf": [{"type": "string"}, {"type": "integer"}]})"),
              HasSubstr("said twice"));
  EXPECT_THAT(Refusal(R"({"allOf": [{"properties": {"a": true}, "additionalProperties": false},
      {"properties": {"b": true}}]})"),
              HasSubstr("forbids"));
}

TEST(JsonSchema, References) {
  const char* const tree = R"({"$ref": "#/$defs/node", "$defs": {"node": {"type": "object",
      "properties": {"value": {"type": "integer"}, "left": {"anyOf": [{"$ref": "#/$defs/node"},
      {"type": "null"}]}}, "required": ["value", "left"]}}})";
  ExpectTexts(tree,
              {R"({"value": 1, "left": null})",
               R"({"value": 1, "left": {"value": 2, "left": {"value": 3, "left": null}}})"},
              {R"({"value": 1})", R"({"value": 1, "left": {}})"});
  ExpectTexts(R"({"type": "array", "items": {"$ref": "#"}})", {"[]", "[[], [[]]]"}, {"[1]"});
  ExpectTexts(R"({"$ref": "#/$defs/a~1b", "$defs": {"a/b": {"const": 1}}})", {"1"}, {"2"});
}

TEST(JsonSchema, RefusalsNameThePlace) {
  EXPECT_THAT(Refusal("{"), HasSubstr("no JSON"));
  EXPECT_THAT(Refusal("3"), HasSubstr("#: a schema is an object"));
  EXPECT_THAT(Refusal(R"({"properties": {"a": {"not": {}}}})"),
              HasSubstr("#/properties/a: \"not\" is not supported"));
  EXPECT_THAT(Refusal(R"({"items": {"type": "text"}})"),
              HasSubstr("#/items: there is no \"type\" text"));
  EXPECT_THAT(Refusal(R"({"$ref": "#/$defs/x"})"), HasSubstr("which is not in it"));
  EXPECT_THAT(Refusal(R"({"type": "integer", "minimum": 3, "maximum": 2})"),
              HasSubstr("no integer"));
  EXPECT_THAT(Refusal(R"({"type": "string", "minLength": -1})"), HasSubstr("\"minLength\" is -1"));
  EXPECT_THAT(Refusal(R"({"type": "array", "minItems": 3, "maxItems": 2})"),
              HasSubstr("at least 3"));
  EXPECT_THAT(Refusal(R"({"enum": []})"), HasSubstr("enum"));
}

TEST(JsonSchema, DepthIsBounded) {
  std::string deep = "{}";
  for (int i = 0; i < kMaxSchemaDepth + 1; ++i) deep = R"({"items": )" + deep + "}";
  EXPECT_THAT(Refusal(deep), HasSubstr("nest deeper"));
  EXPECT_THAT(Refusal(std::string(100000, '[')), HasSubstr("nests deeper"));
  EXPECT_THAT(Refusal(std::string(kMaxSchemaBytes + 1, ' ')), HasSubstr("bytes"));
}

}  // namespace
}  // namespace tandem::coordinator::grammar
