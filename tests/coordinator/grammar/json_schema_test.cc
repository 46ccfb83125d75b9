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

TEST(JsonSchema, ConstEnumAndTypeHoldTogether) {
  ExpectTexts(R"({"const": 2, "enum": [1, 2, 3]})", {"2"}, {"1", "3"});
  ExpectTexts(R"({"type": ["integer", "null"], "enum": ["a", 1, null, 1.5]})", {"1", "null"},
              {"1.5", R"("a")"});
  ExpectTexts(R"({"type": ["array", "boolean"], "maxItems": 0})", {"[]", "true"}, {"[1]", "0"});
  EXPECT_THAT(Refusal(R"({"const": 4, "enum": [1]})"), HasSubstr("no value fits"));
  EXPECT_THAT(Refusal(R"({"type": "string", "const": 4})"), HasSubstr("no value fits"));
  EXPECT_THAT(Refusal(R"({"const": "a", "minLength": 1})"), HasSubstr("beside \"enum\""));
  EXPECT_THAT(Refusal(R"({"enum": 3})"), HasSubstr("not a list"));
  EXPECT_THAT(Refusal(R"({"type": []})"), HasSubstr("no name and no list"));
  EXPECT_THAT(Refusal(R"({"type": ["null", "null"]})"), HasSubstr("twice"));
  EXPECT_THAT(Refusal(R"({"type": ["null", 1]})"), HasSubstr("list of names"));
  EXPECT_THAT(Refusal(R"({"type": "any", "const": 1})"), HasSubstr("no \"type\""));
}

TEST(JsonSchema, FirstItemsAtTheirEdges) {
  const std::string first = R"({"prefixItems": [{"const": 1}, {"const": 2}])";
  ExpectTexts(first + R"(, "minItems": 2, "maxItems": 2})", {"[1,2]"}, {"[1]", "[1,2,3]"});
  ExpectTexts(first + R"(, "maxItems": 1})", {"[]", "[1]"}, {"[1,2]"});
  ExpectTexts(first + R"(, "maxItems": 0})", {"[]"}, {"[1]"});
  ExpectTexts(first + R"(, "minItems": 3})", {"[1,2,3]", "[1, 2, true, {}]"}, {"[1,2]"});
  ExpectTexts(first + R"(, "items": {"const": 3}, "minItems": 3, "maxItems": 3})", {"[1,2,3]"},
              {"[1,2]", "[1,2,3,3]"});
  EXPECT_THAT(Refusal(first + R"(, "items": false, "minItems": 3})"), HasSubstr("at least 3"));
  EXPECT_THAT(Refusal(first + R"(, "items": []})"), HasSubstr("a list of \"items\""));
  EXPECT_THAT(Refusal(R"({"prefixItems": 3})"), HasSubstr("not a list"));
  EXPECT_THAT(Refusal(R"({"uniqueItems": true})"), HasSubstr("uniqueItems"));
}

TEST(JsonSchema, MergingRefusesWhatItWouldLose) {
  const std::pair<const char*, const char*> cases[] = {
      {R"({"allOf": [{"items": {"const": 1}}, {"prefixItems": [true]}]})", "differs"},
      {R"({"allOf": [{"minimum": 1}, {"minimum": 2}]})", "said twice"},
      {R"({"allOf": [{"unevaluatedProperties": false}, {"additionalProperties": {}}]})", "beside"},
      {R"({"allOf": [{"properties": {"a": {"minLength": 1}}},
                     {"properties": {"a": {"minLength": 2}}}]})",
       "#/allOf/1/properties/a: \"minLength\" is said twice"},
      {R"({"properties": {"a": true}, "additionalProperties": false,
           "anyOf": [{"properties": {"b": true}}]})",
       "#/anyOf/0: \"additionalProperties\" forbids"},
      {R"({"type": "string", "anyOf": [3]})", "#/anyOf/0: is not a schema"},
      {R"({"allOf": []})", "#/allOf: is not a list"},
      {R"({"anyOf": {}})", "#/anyOf: is not a list"},
      {R"({"type": "object", "$ref": "#/a", "a": {}})", "beside \"$ref\""},
  };
  for (const auto& [schema, refusal] : cases) {
    EXPECT_THAT(Refusal(schema), HasSubstr(refusal)) << schema;
  }
  ExpectTexts(R"({"$id": "x", "type": "integer", "anyOf": [{"minimum": 3}, {"maximum": -3}]})",
              {"3", "-4"}, {"0"});
}

TEST(JsonSchema, ReferencesAreFollowed) {
  std::string chain = R"({"$ref": "#/$defs/0", "$defs": {)";
  for (int i = 0; i < 200; ++i) {
    chain += '"' + std::to_string(i) + R"(": {"title": "t", "$ref": "#/$defs/)" +
             std::to_string(i + 1) + R"("}, )";
  }
  ExpectTexts(chain + R"("200": {"const": 7}}})", {"7"}, {"8"});
  ExpectTexts(R"({"$ref": "#/$defs/a%20%25%7e1b", "$defs": {"a %/b": {"const": 1}}})", {"1"}, {});
  ExpectTexts(R"({"prefixItems": [{"const": 1}, {"$ref": "#/prefixItems/0"}], "minItems": 2})",
              {"[1,1]"}, {"[1,2]"});
  ExpectTexts(R"({"allOf": [{"const": 1}], "$defs": {"a": {"$ref": "#/allOf/0"}}})", {"1"}, {});
  for (const char* schema :
       {R"({"$ref": "#"})", R"({"$ref": "#/a", "a": {"$ref": "#/b"}, "b": {"$ref": "#/a"}})",
        R"({"allOf": [{"$ref": "#/a"}, {}], "a": {"$ref": "#/a"}})"}) {
    EXPECT_THAT(Refusal(schema), HasSubstr("refers to itself")) << schema;
  }
  for (const char* reference :
       {"#/a/2", "#/a/01", "#/a/-1", "#/a/x", "#/a/0/b", "#b", "other", ""}) {
    EXPECT_THAT(Refusal(R"({"a": [{}], "$ref": ")" + std::string(reference) + "\"}"),
                HasSubstr("not in it"))
        << reference;
  }
  EXPECT_THAT(Refusal(R"({"$ref": 3})"), HasSubstr("not a string"));
  EXPECT_THAT(Refusal(R"({"items": {"$id": "x"}})"), HasSubstr("#/items: \"$id\""));
}

TEST(JsonSchema, PlacesAreShortPointers) {
  EXPECT_THAT(Refusal(R"({"properties": {"a/b~c\n\"": {"not": 1}}})"),
              HasSubstr("#/properties/a~1b~0c\\n\\\": \"not\""));
  const std::string name(5000, 'n');
  std::string deep = R"({"not": 1})";
  for (int i = 0; i < 60; ++i)
    deep = R"({"properties": {")" + name.substr(0, 200) + "\": " + deep + "}}";
  for (const std::string& schema :
       {R"({"properties": {")" + name + R"(": {"not": 1}}})", R"({"type": ")" + name + "\"}",
        R"({"const": 1, "type": ")" + name + "\"}", R"({"maxLength": ")" + name + "\"}",
        R"({"$ref": "#/)" + name + "\"}", deep}) {
    const std::string refusal = Refusal(schema);
    EXPECT_LT(refusal.size(), 600u) << refusal;
    EXPECT_THAT(refusal, HasSubstr("..."));
  }
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
