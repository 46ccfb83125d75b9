// A schema comes from outside: whatever it says takes little time and memory.
#include <ctime>
#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "coordinator/grammar/json_schema.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/coordinator/grammar/language.h"

namespace tandem::coordinator::grammar {
namespace {

using testing::HasSubstr;

std::string Refusal(std::string_view schema) {
  const auto grammar = GrammarOfSchema(schema);
  return std::string(grammar.status().message());
}
// `count` parts with commas between, as far as a schema may be long.
std::string Many(const std::function<std::string(int)>& part, int count = 1 << 20) {
  std::string all;
  for (int i = 0; i < count; ++i) {
    const std::string one = part(i);
    if (all.size() + one.size() > kMaxSchemaBytes - 2000) break;
    if (!all.empty()) all += ',';
    all += one;
  }
  return all;
}
std::string Name(int i) { return '"' + std::to_string(i) + '"'; }
std::string Nested(const std::string& open, const std::string& inner, const std::string& close,
                   int depth) {
  std::string all;
  for (int i = 0; i < depth; ++i) all += open;
  all += inner;
  for (int i = 0; i < depth; ++i) all += close;
  return all;
}

TEST(SchemaLimits, AreSaid) {
  const auto members = [](int count) {
    return "{\"properties\": {" + Many([](int i) { return Name(i) + ":{}"; }, count) + "}}";
  };
  EXPECT_EQ(Refusal(members(1024)), "");
  EXPECT_THAT(Refusal(members(1025)), HasSubstr("more than 1024 members"));
  EXPECT_THAT(Refusal(R"({"required": [)" + Many(Name, 1025) + "]}"),
              HasSubstr("\"required\" has more than 1024"));
  EXPECT_THAT(Refusal(R"({"type": "null", "type": "null"})"), HasSubstr("type stands twice"));
  const auto open_object = [](const std::string& name) {
    return R"({"properties": {")" + name + R"(": {}}, "additionalProperties": true})";
  };
  EXPECT_EQ(Refusal(open_object(std::string(256, 'a'))), "");
  EXPECT_THAT(Refusal(open_object(std::string(257, 'a'))), HasSubstr("256 bytes beside"));
  EXPECT_THAT(Refusal(Nested("{\"items\":", "{}", "}", 65)), HasSubstr("nest deeper than 64"));
  EXPECT_THAT(Refusal("{\"default\":" + Nested("[", "", "]", 512) + "}"),
              HasSubstr("nests deeper than 512"));
  EXPECT_EQ(Refusal("{\"default\":" + Nested("[", "", "]", 511) + "}"), "");
}

struct Case {
  const char* name;
  std::string schema;
};

std::vector<Case> LargeSchemas() {
  const std::string values = Many([](int) { return "0"; }, 60000);
  const std::string objects = Many([](int) { return "{}"; }, 60000);
  const auto list = [](const char* keyword, const std::string& parts) {
    return std::string("{\"") + keyword + "\":[" + parts + "]}";
  };
  return {
      {"brackets", std::string(kMaxSchemaBytes, '[')},
      {"values", list("enum", Many([](int) { return "0"; }))},
      {"texts", list("enum", Many([](int i) { return Name(i); }))},
      {"values of many types", R"({"type":[)" + Many([](int) { return R"("null")"; }, 9000) +
                                   R"(],"enum":[)" + values + "]}"},
      {"objects as values", list("enum", Many([](int) { return "{}"; }))},
      {"a long text", R"({"const":")" + std::string(kMaxSchemaBytes - 100, '"' + 1) + "\"}"},
      {"nested, with values", Nested("{\"items\":", list("enum", objects), "}", 60)},
      {"nested choices, with values",
       Nested("{\"type\":\"array\",\"anyOf\":[{\"items\":", list("enum", objects), "}]}", 30)},
      {"members", "{" + Many([](int i) { return Name(i) + ":0"; }) + "}"},
      {"objects of many members",
       list("anyOf", Many([](int) {
              return "{\"properties\":{" + Many([](int i) { return Name(i) + ":{}"; }, 1024) + "}}";
            }))},
      {"objects of required members",
       list("anyOf", Many([](int) { return "{\"required\":[" + Many(Name, 1000) + "]}"; }))},
      {"required, merged", "{\"required\":[" + Many([](int i) { return Name(i); }, 16000) +
                               "],\"allOf\":[{\"required\":[" +
                               Many([](int i) { return Name(i + 20000); }, 16000) + "]}]}"},
      {"choices", list("anyOf", Many([](int) { return "{}"; }))},
      {"choices merged with values", "{\"anyOf\":[" +
                                         Many([](int) { return "{\"type\":\"null\"}"; }, 1000) +
                                         "],\"enum\":[" + values + "]}"},
      {"all", list("allOf", Many([](int) { return "{}"; }))},
      {"doubled again and again",
       [] {
         std::string schema = R"({"$ref":"#/$defs/0","$defs":{)";
         for (int i = 0; i < 60; ++i) {
           const std::string next = R"({"$ref":"#/$defs/)" + std::to_string(i + 1) + "\"}";
           schema += Name(i) + ":{\"allOf\":[" + next + "," + next + "]},";
         }
         return schema + R"("60":{}}})";
       }()},
      {"choices doubled by merging",
       [] {
         std::string schema = R"({"$ref":"#/$defs/0","$defs":{)";
         for (int i = 0; i < 60; ++i) {
           const std::string next =
               R"({"allOf":[{"$ref":"#/$defs/)" + std::to_string(i + 1) + "\"},{}]}";
           schema += Name(i) + ":{\"anyOf\":[" + next + "," + next + "]},";
         }
         return schema + R"("60":{}}})";
       }()},
      {"references in many spellings",
       "{\"prefixItems\":[" +
           Many(
               [](int i) {
                 std::string reference = "#/";
                 for (int bit = 0; bit < 13; ++bit) reference += (i >> bit & 1) != 0 ? "%61" : "a";
                 return R"({"$ref":")" + reference + "\"}";
               },
               3000) +
           R"(],"aaaaaaaaaaaaa":)" + list("enum", Many([](int) { return "0"; }, 30000)) + "}"},
      {"chains of references",
       "{\"prefixItems\":[" + Many([](int) { return R"({"$ref":"#/a/0"})"; }, 6000) + R"(],"a":{)" +
           Many([](int i) { return Name(i) + R"(:{"$ref":"#/a/)" + std::to_string(i + 1) + "\"}"; },
                1000) +
           R"(,"1000":{}}})"},
      {"dates", list("prefixItems", Many([](int) { return R"({"format":"date-time"})"; }))},
      {"integers",
       list("prefixItems", Many([](int) {
              return R"({"type":"integer","minimum":-234567890123456789,"maximum":1111})";
            }))},
      {"numbers",
       list("prefixItems", Many([](int) {
              return R"({"minimum":-0.234567890123456789,"maximum":111.123456789012345})";
            }))},
      {"digits", R"({"minimum":)" + std::string(kMaxSchemaBytes - 100, '1') + "}"},
      {"patterns", list("prefixItems", Many([](int) { return R"({"pattern":"[^a]"})"; }))},
      {"a long pattern", R"({"pattern":")" + Nested("[^a]", "", "", 16000) + "\"}"},
      {"long patterns", list("prefixItems", Many([](int) {
                               return R"({"pattern":")" + Nested("\\\\W", "", "", 15000) + "\"}";
                             }))},
      {"nested patterns",
       R"({"pattern":")" + Nested("(", Nested("[^a]", "", "", 15000), ")", 99) + "\"}"},
      {"counts", list("prefixItems", Many([](int) { return R"({"maxLength":65536})"; }))},
      {"open objects", list("prefixItems", Many([](int i) {
                              return R"({"required":[")" + std::to_string(i) +
                                     std::string(200, 'b') + "\"]}";
                            }))},
      {"names",
       "{\"additionalProperties\":{},\"required\":[" +
           Many([](int i) { return '"' + std::to_string(i) + std::string(240, 'b') + '"'; }, 1000) +
           "]}"},
  };
}

TEST(SchemaLimits, WhateverASchemaSaysTakesLittleTime) {
  for (const auto& [name, schema] : LargeSchemas()) {
    ASSERT_LE(schema.size(), kMaxSchemaBytes) << name;
    const std::clock_t begin = std::clock();
    const auto grammar = GrammarOfSchema(schema);
    const double taken = static_cast<double>(std::clock() - begin) / CLOCKS_PER_SEC;
    EXPECT_LT(grammar.status().message().size(), 700u) << name;
    // Seconds of a processor. It takes at most 0.07 where this was written; sanitizers take more.
    EXPECT_LT(taken, 2) << name;
  }
}

}  // namespace
}  // namespace tandem::coordinator::grammar
