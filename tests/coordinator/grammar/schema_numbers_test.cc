// What schemas say of numbers.
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <random>
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

struct Case {
  std::string_view schema;
  std::vector<std::string> valid;
  std::vector<std::string> invalid;
};
void Expect(const std::vector<Case>& cases) {
  for (const auto& [schema, valid, invalid] : cases) {
    SCOPED_TRACE(schema);
    Language texts(GrammarOfSchema(schema));
    for (const std::string& text : valid) EXPECT_TRUE(texts.Has(text)) << text;
    for (const std::string& text : invalid) EXPECT_FALSE(texts.Has(text)) << text;
  }
}
std::string Refusal(std::string_view schema) {
  const auto grammar = GrammarOfSchema(schema);
  EXPECT_FALSE(grammar.ok()) << schema;
  return std::string(grammar.status().message());
}

TEST(SchemaNumbers, Bounds) {
  Expect({
      {R"({"type": "number", "minimum": 0})", {"0", "0.0", "0.5", "7", "123.25"}, {"-1", "-0.1"}},
      {R"({"type": "number", "exclusiveMinimum": 0})",
       {"0.1", "0.001", "1"},
       {"0", "0.0", "-0", "-1"}},
      {R"({"type": "number", "minimum": 0, "maximum": 1})",
       {"0", "1", "1.0", "0.999", "0.0"},
       {"1.1", "1.01", "2", "-0.5", "1e0"}},
      {R"({"minimum": -1, "exclusiveMaximum": 1})",
       {"-1", "-1.0", "-0.5", "-0", "0", "0.99"},
       {"1", "1.0", "-1.01", "-2"}},
      {R"({"type": "number", "minimum": 0.25, "maximum": 0.75})",
       {"0.25", "0.250", "0.3", "0.5", "0.75", "0.2500001"},
       {"0.2", "0.24999", "0.7500001", "0.76", "0", "1"}},
      {R"({"type": "number", "exclusiveMinimum": 0.5, "exclusiveMaximum": 0.55})",
       {"0.51", "0.501", "0.5499"},
       {"0.5", "0.50", "0.55", "0.550", "0.6"}},
      {R"({"type": "number", "minimum": 0.5, "maximum": 0.5})", {"0.5", "0.500"}, {"0.51", "0.4"}},
      {R"({"type": "number", "exclusiveMaximum": 0})", {"-1", "-0.01"}, {"0", "-0", "-0.0"}},
      {R"({"type": "number", "maximum": -2.5})", {"-2.5", "-3", "-2.51"}, {"-2.4", "-2", "2"}},
      {R"({"type": "number", "minimum": 1.5e2, "maximum": 2E+2})", {"150", "200"}, {"149", "201"}},
      {R"({"type": "number", "minimum": 25e-2})", {"0.25", "1"}, {"0.2"}},
      {R"({"type": "number", "minimum": 1, "exclusiveMinimum": 1})", {"1.1"}, {"1", "1.0"}},
      {R"({"type": "number", "minimum": 2, "exclusiveMinimum": 1})", {"2"}, {"1.5"}},
  });
}

TEST(SchemaNumbers, IntegerBounds) {
  Expect({
      {R"({"type": "integer", "minimum": -0.5, "maximum": 1.5})", {"0", "1"}, {"-1", "2"}},
      {R"({"type": "integer", "exclusiveMinimum": -2, "exclusiveMaximum": 1.0})",
       {"-1", "0"},
       {"-2", "1"}},
      {R"({"type": "integer", "minimum": -1.5, "maximum": -0.5})", {"-1"}, {"-2", "0"}},
  });
}

TEST(SchemaNumbers, BoundsBeyondWhatTheGrammarHas) {
  Expect({
      {R"({"type": "integer", "minimum": -9223372036854775808})",
       {"-999999999999999999", "5"},
       {"-9223372036854775808"}},
      {R"({"type": "integer", "exclusiveMaximum": 18446744073709551615, "exclusiveMinimum": -1e300})",
       {"-5", "999999999999999999"},
       {}},
      // Numbers with an exponent may be beyond a bound that all others meet.
      {R"({"type": "number", "maximum": 1e20})", {"-3.5", "999999999999999999"}, {"1e5", "9e99"}},
      {R"({"type": "number", "exclusiveMinimum": -1e30})", {"-3.5"}, {"-9e99"}},
      {R"({"type": "number", "minimum": -999999999999999999999, "maximum": 3})", {"3"}, {"4"}},
  });
  EXPECT_THAT(Refusal(R"({"type": "integer", "minimum": 9223372036854775807})"),
              HasSubstr("#: \"minimum\" has more than 18 digits before"));
  EXPECT_THAT(Refusal(R"({"type": "number", "maximum": -1e18})"),
              HasSubstr("\"maximum\" has more than 18 digits before"));
  EXPECT_THAT(Refusal(R"({"type": "number", "maximum": 1e-19})"), HasSubstr("after the point"));
  EXPECT_THAT(Refusal(R"({"type": "number", "maximum": 1e-999})"), HasSubstr("exponent"));
  EXPECT_THAT(Refusal(R"({"type": "integer", "exclusiveMinimum": 999999999999999999})"),
              HasSubstr("no integer"));
  EXPECT_THAT(Refusal(R"({"type": "number", "exclusiveMinimum": 1, "maximum": 1})"),
              HasSubstr("no number"));
  EXPECT_THAT(Refusal(R"({"type": "number", "minimum": 1.5, "maximum": 1.25})"),
              HasSubstr("no number"));
  EXPECT_THAT(Refusal(R"({"type": "number", "minimum": true})"), HasSubstr("is not a number"));
}

// `thousandths` as a text; all have the same value.
std::vector<std::string> TextsOf(int thousandths) {
  const std::string sign = thousandths < 0 ? "-" : "";
  const int magnitude = std::abs(thousandths);
  std::string fraction = std::to_string(1000 + magnitude % 1000).substr(1);
  const std::string whole = sign + std::to_string(magnitude / 1000);
  std::vector<std::string> texts = {whole + "." + fraction + "0", whole + "." + fraction};
  while (fraction.ends_with("0")) {
    fraction.pop_back();
    texts.push_back(fraction.empty() ? whole : whole + "." + fraction);
  }
  return texts;
}

TEST(SchemaNumbers, AreThoseBetweenTheBounds) {
  std::mt19937 random(3);
  const auto some = [&] {
    const int scales[] = {1, 10, 100, 1000};
    return (static_cast<int>(random() % 41) - 20) * scales[random() % 4];
  };
  int valid = 0;
  for (int round = 0; round < 300; ++round) {
    const int least = some(), most = some();
    const bool above = random() % 3 == 0, below = random() % 3 == 0;
    if (least > most || (least == most && (above || below))) continue;
    const std::string schema =
        std::string(R"({"type": "number", ")") + (above ? "exclusiveMinimum" : "minimum") +
        "\": " + TextsOf(least).back() + ", \"" + (below ? "exclusiveMaximum" : "maximum") +
        "\": " + TextsOf(most).back() + "}";
    Language numbers(GrammarOfSchema(schema));
    for (int value = least - 30; value <= most + 30; value += 1 + static_cast<int>(random() % 9)) {
      const bool within =
          (above ? value > least : value >= least) && (below ? value < most : value <= most);
      valid += within ? 1 : 0;
      for (const std::string& text : TextsOf(value)) {
        ASSERT_EQ(numbers.Has(text), within) << text << " of " << schema;
      }
    }
    for (int i = 0; i < 10; ++i) {
      const auto text = numbers.Draw(random);
      ASSERT_TRUE(text.has_value() && nlohmann::json::accept(*text)) << schema;
      const double value = nlohmann::json::parse(*text).get<double>() * 1000;
      ASSERT_TRUE(least - 1e-6 <= value && value <= most + 1e-6) << *text << " of " << schema;
    }
  }
  EXPECT_GT(valid, 10000);
}

TEST(SchemaNumbers, ValuesKeepTheirDigits) {
  Expect({
      {R"({"enum": [1.50, 1e2, 12345678901234567890123, -0.1]})",
       {"1.50", "1e2", "12345678901234567890123", "-0.1"},
       {"1.5", "100"}},
      {R"({"const": {"a": [0.1000000000000000000001]}})",
       {R"({"a":[0.1000000000000000000001]})"},
       {R"({"a":[0.1]})"}},
      {R"({"const": 18446744073709551615})", {"18446744073709551615"}, {}},
      {R"({"type": "integer", "enum": [1, 2.5]})", {"1"}, {"2.5"}},
      {R"({"type": "number", "enum": [1, 2.5]})", {"1", "2.5"}, {}},
  });
}

}  // namespace
}  // namespace tandem::coordinator::grammar
