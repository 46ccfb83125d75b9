#include "coordinator/grammar/automaton.h"

#include <memory>
#include <random>
#include <string>
#include <string_view>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/coordinator/grammar/reference.h"

namespace tandem::coordinator::grammar {
namespace {

using testing::HasSubstr;

Automaton Compiled(std::vector<Expression> rules) {
  auto network = Compile({std::move(rules)});
  EXPECT_TRUE(network.ok()) << network.status();
  return Automaton(*std::move(network));
}
std::string Refusal(std::vector<Expression> rules) {
  return std::string(Compile({std::move(rules)}).status().message());
}
Automaton::State After(Automaton& automaton, std::string_view text) {
  Automaton::State state = automaton.start();
  for (const char c : text) state = automaton.Next(state, static_cast<uint8_t>(c));
  return state;
}
bool Matches(Automaton& automaton, std::string_view text) {
  return automaton.CanEnd(After(automaton, text));
}
bool MayBegin(Automaton& automaton, std::string_view text) {
  return After(automaton, text) != Automaton::kDead;
}

// value: [value, ...] or a letter
std::vector<Expression> Lists() {
  return {
      Choice({Sequence({Text("["),
                        Optional(Sequence({Rule(0), Repeat(Sequence({Text(","), Rule(0)}), 0)})),
                        Text("]")}),
              Class({{'a', 'c'}})})};
}

TEST(Automaton, Texts) {
  Automaton a = Compiled({Choice({Text("yes"), Text("no"), Text("none")})});
  EXPECT_TRUE(Matches(a, "yes"));
  EXPECT_TRUE(Matches(a, "no"));
  EXPECT_TRUE(Matches(a, "none"));
  EXPECT_FALSE(Matches(a, "non"));
  EXPECT_TRUE(MayBegin(a, "non"));
  EXPECT_FALSE(MayBegin(a, "noo"));
  EXPECT_FALSE(MayBegin(a, "yesn"));
}

TEST(Automaton, RepetitionsHaveBounds) {
  Automaton a = Compiled({Repeat(Class({{'0', '9'}}), 2, 4)});
  for (int n = 0; n < 7; ++n) {
    const std::string digits(static_cast<size_t>(n), '7');
    EXPECT_EQ(Matches(a, digits), n >= 2 && n <= 4) << n;
    EXPECT_EQ(MayBegin(a, digits), n <= 4) << n;
  }
}

TEST(Automaton, RulesNest) {
  Automaton a = Compiled(Lists());
  EXPECT_TRUE(Matches(a, "[a,[b,[],c],[[a]]]"));
  EXPECT_FALSE(Matches(a, "[a,[b,[],c],[[a]]"));
  EXPECT_FALSE(MayBegin(a, "[a,[b,[],c],[[a]]]]"));
  EXPECT_FALSE(MayBegin(a, "[a,,"));
}

TEST(Automaton, NestingHasABound) {
  Automaton a = Compiled(Lists());
  const std::string deepest(static_cast<size_t>(Automaton::kMaxDepth) + 1, '[');
  EXPECT_TRUE(MayBegin(a, deepest));
  EXPECT_FALSE(MayBegin(a, deepest + "["));
  EXPECT_FALSE(MayBegin(a, deepest + "a,["));
  EXPECT_TRUE(Matches(a, deepest + std::string(deepest.size(), ']')));
}

TEST(Automaton, LastCallsTakeNoStack) {
  Automaton a = Compiled({Sequence({Text("a"), Optional(Rule(0))})});
  const size_t states = (After(a, "aaaa"), a.num_states());
  EXPECT_TRUE(Matches(a, std::string(100000, 'a')));
  EXPECT_EQ(a.num_states(), states);
}

TEST(Automaton, StatesAreFoundAgain) {
  Automaton a = Compiled(Lists());
  EXPECT_EQ(After(a, "[a,[b"), After(a, "[c,c,[a,b"));
  EXPECT_NE(After(a, "[a,[b"), After(a, "[a,[[b"));
}

// A sum whose first part is a sum: each bracket may begin two different ones.
TEST(Automaton, AmbiguousNestingStaysSmall) {
  const auto sum = [](const char* sign) {
    return Sequence({Text("["), Rule(0), Text(sign), Rule(0), Text("]")});
  };
  Automaton a = Compiled({Choice({sum("+"), sum("-"), sum("*"), Text("a")})});
  std::string text = "a";
  for (int i = 0; i < 100; ++i) text = "[" + text + "+-*"[i % 3] + (i % 2 == 0 ? "a]" : "[a+a]]");
  EXPECT_TRUE(Matches(a, text));
  EXPECT_FALSE(MayBegin(a, text + "]"));
  EXPECT_EQ(a.want(), Automaton::Want::kNone);
  EXPECT_LT(a.bytes(), size_t{2} << 20);
}

// Ends without reading anything, in any order of calls.
TEST(Automaton, CallsThatReadNothing) {
  Automaton a = Compiled({Sequence({Rule(1), Rule(1), Text("x"), Rule(1)}), Optional(Text("a"))});
  for (const char* text : {"x", "ax", "aax", "xa", "axa", "aaxa"}) EXPECT_TRUE(Matches(a, text));
  for (const char* text : {"", "a", "aaax", "xaa"}) EXPECT_FALSE(Matches(a, text)) << text;
}

TEST(Automaton, GoesOnInAnother) {
  auto network = Compile({Lists()});
  ASSERT_TRUE(network.ok());
  const auto shared = std::make_shared<const Network>(*std::move(network));
  Automaton one(shared), two(shared);
  After(two, "[[a,");
  const Automaton::State state = two.Import(one, After(one, "[a,[b"));
  EXPECT_EQ(state, After(two, "[c,c,[a,b"));
  EXPECT_EQ(two.Import(one, Automaton::kDead), Automaton::kDead);
}

TEST(Automaton, WorkHasABound) {
  Automaton a = Compiled({Repeat(Optional(Class({{'a', 'b'}})), 1000, 1000)});
  a.AllowWork(100);
  EXPECT_EQ(a.Next(a.start(), 'a'), Automaton::kDead);
  EXPECT_EQ(a.want(), Automaton::Want::kWork);
  a.AllowWork(1 << 20);
  EXPECT_NE(a.Next(a.start(), 'a'), Automaton::kDead) << "what was not found is not kept";
  EXPECT_EQ(a.want(), Automaton::Want::kNone);
}

TEST(Automaton, TheStartHasABoundOfWorkToo) {
  auto network = Compile({{Repeat(Optional(Text("a")), 1000, 1000)}});
  ASSERT_TRUE(network.ok());
  const auto shared = std::make_shared<const Network>(*std::move(network));
  const Automaton poor(shared, 100), rich(shared, 1 << 20);
  EXPECT_EQ(poor.start(), Automaton::kDead);
  EXPECT_EQ(poor.want(), Automaton::Want::kWork);
  EXPECT_NE(rich.start(), Automaton::kDead);
  EXPECT_EQ(rich.want(), Automaton::Want::kNone);
}

TEST(Automaton, IsFullAtItsBound) {
  // 2^17 different sets of places where one of the last 17 bytes was an a.
  Automaton a = Compiled(
      {Sequence({Repeat(Class({{'a', 'b'}}), 0), Text("a"), Repeat(Class({{'a', 'b'}}), 17, 17)})});
  std::mt19937 random(1);
  Automaton::State state = a.start();
  for (int i = 0; i < 2'000'000 && state != Automaton::kDead; ++i) {
    state = a.Next(state, random() % 2 == 0 ? 'a' : 'b');
  }
  EXPECT_EQ(state, Automaton::kDead);
  EXPECT_EQ(a.want(), Automaton::Want::kRoom);
  EXPECT_GT(a.bytes(), Automaton::kMaxBytes);
  EXPECT_LT(a.bytes(), Automaton::kMaxBytes * 11 / 10);
}

TEST(Compile, RefusesWhatNeverEnds) {
  EXPECT_THAT(Refusal({Sequence({Text("a"), Rule(0)})}), HasSubstr("no string"));
  EXPECT_THAT(Refusal({Choice({})}), HasSubstr("no string"));
  EXPECT_THAT(Refusal({Sequence({Text("a"), Class({})})}), HasSubstr("no string"));
}

TEST(Compile, LeavesOutWhatNeverEnds) {
  Automaton a = Compiled(
      {Choice({Text("a"), Sequence({Text("b"), Rule(1)})}), Sequence({Text("c"), Rule(1)})});
  EXPECT_TRUE(Matches(a, "a"));
  EXPECT_FALSE(MayBegin(a, "b"));
}

TEST(Compile, RefusesLeftRecursion) {
  EXPECT_THAT(Refusal({Choice({Sequence({Rule(0), Text("a")}), Text("b")})}), HasSubstr("rule 0"));
  EXPECT_THAT(
      Refusal({Choice({Rule(1), Text("a")}), Sequence({Repeat(Text("c"), 0), Rule(0), Text("b")})}),
      HasSubstr("left recursion"));
}

TEST(Compile, RefusesRulesThatDoNotExist) {
  EXPECT_THAT(Refusal({Rule(3)}), HasSubstr("not rule 3"));
  EXPECT_THAT(Refusal({}), HasSubstr("no rules"));
}

TEST(Compile, BoundsStates) {
  EXPECT_THAT(Refusal({Repeat(Repeat(Text("ab"), 1000, 1000), 1000, 1000)}), HasSubstr("states"));
}

TEST(Compile, BoundsMoves) {
  const std::vector<Expression> nothing(3000, Text(""));
  EXPECT_THAT(Refusal({Repeat(Choice(nothing), 1000, 1000)}), HasSubstr("edges"));
}

TEST(Compile, BoundsEdges) {
  std::vector<CharacterRange> every_second;
  for (uint32_t c = 0; c < 0x80; c += 2) every_second.push_back({c, c});
  EXPECT_THAT(Refusal({Repeat(Class(std::move(every_second)), 20000, 20000)}), HasSubstr("edges"));
}

Expression RandomExpression(std::mt19937& random, int depth, RuleIndex num_rules) {
  switch (random() % (depth > 0 ? 7 : 3)) {
    case 0:
      return Text(random() % 4 == 0 ? "" : random() % 2 == 0 ? "a" : "ab");
    case 1:
      return Class({{'b', random() % 2 == 0 ? 0x62u : 0x63u}});
    case 2:
      return Class({{0xe8, random() % 2 == 0 ? 0xe8u : 0xe9u}});
    case 3:
      return Sequence({RandomExpression(random, depth - 1, num_rules),
                       RandomExpression(random, depth - 1, num_rules)});
    case 4:
      return Choice({RandomExpression(random, depth - 1, num_rules),
                     RandomExpression(random, depth - 1, num_rules)});
    case 5: {
      const auto least = static_cast<uint32_t>(random() % 3);
      return Repeat(RandomExpression(random, depth - 1, num_rules), least,
                    random() % 2 == 0 ? kUnbounded : least + static_cast<uint32_t>(random() % 3));
    }
    default:
      return Rule(static_cast<RuleIndex>(random() % num_rules));
  }
}

TEST(Automaton, IsWhatItsGrammarIsByDefinition) {
  std::mt19937 random(7);
  int grammars = 0, matches = 0;
  while (grammars < 400) {
    Grammar grammar;
    for (int i = 0; i < 3; ++i) grammar.rules.push_back(RandomExpression(random, 3, 3));
    auto network = Compile(grammar);
    if (!network.ok()) continue;
    ++grammars;
    Automaton automaton(*std::move(network));
    const Reference reference(grammar);
    for (int i = 0; i < 200; ++i) {
      std::string text;
      const char* const pieces[] = {"a", "b", "c", "\xc3\xa8", "\xc3\xa9"};
      for (size_t n = random() % 7; n > 0; --n) text += pieces[random() % 5];
      ASSERT_EQ(Matches(automaton, text), reference.Matches(text)) << grammars << " " << text;
      matches += Matches(automaton, text) ? 1 : 0;
    }
  }
  EXPECT_GT(matches, 1000);
}

}  // namespace
}  // namespace tandem::coordinator::grammar
