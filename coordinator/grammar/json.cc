#include "coordinator/grammar/json.h"

#include <utility>

#include "coordinator/grammar/characters.h"

namespace tandem::coordinator::grammar {
namespace {

constexpr uint32_t kMostIndentation = 64;
constexpr uint32_t kMostDigits = 18;

Expression Digits(uint32_t least, uint32_t most) {
  return Repeat(Class({{'0', '9'}}), least, most);
}
Expression HexDigits(uint32_t count) {
  return Repeat(Class({{'0', '9'}, {'A', 'F'}, {'a', 'f'}}), count, count);
}
// One of U+0000 to U+D7FF and U+E000 to U+FFFF, or a pair of surrogates.
Expression EscapedCodeUnits() {
  const Expression d = Class({{'D', 'D'}, {'d', 'd'}});
  const Expression other = Class({{'0', '9'}, {'A', 'C'}, {'E', 'F'}, {'a', 'c'}, {'e', 'f'}});
  const Expression high = Class({{'8', '9'}, {'A', 'B'}, {'a', 'b'}});
  const Expression low = Class({{'C', 'F'}, {'c', 'f'}});
  return Choice({Sequence({other, HexDigits(3)}), Sequence({d, Class({{'0', '7'}}), HexDigits(2)}),
                 Sequence({d, high, HexDigits(2), Text("\\u"), d, low, HexDigits(2)})});
}

// One that stands for itself.
Expression PlainCharacter() { return Class({{' ', '!'}, {'#', '['}, {']', kLastCharacter}}); }
Expression OneCharacter() {
  const Expression short_escape = Class({{'"', '"'},
                                         {'/', '/'},
                                         {'\\', '\\'},
                                         {'b', 'b'},
                                         {'f', 'f'},
                                         {'n', 'n'},
                                         {'r', 'r'},
                                         {'t', 't'}});
  return Choice(
      {PlainCharacter(),
       Sequence({Text("\\"), Choice({short_escape, Sequence({Text("u"), EscapedCodeUnits()})})})});
}

}  // namespace

Grammar JsonGrammar(Expression start) {
  Grammar grammar;
  grammar.rules.push_back(std::move(start));
  grammar.rules.push_back(JsonValue());
  grammar.rules.push_back(OneCharacter());
  grammar.rules.push_back(Optional(
      Choice({Text(" "), Sequence({Text("\n"), Repeat(Text(" "), 0, kMostIndentation)})})));
  grammar.rules.push_back(Repeat(PlainCharacter(), 0));
  grammar.rules.push_back(Class({{0x80, kLastCharacter}}));
  return grammar;
}

Expression Blank() { return Rule(kBlankRule); }
Expression JsonCharacter() { return Rule(kCharacterRule); }

Expression JsonString(uint32_t min_length, uint32_t max_length) {
  return InQuotes(Repeat(JsonCharacter(), min_length, max_length));
}

Expression JsonInteger() {
  return Sequence(
      {Optional(Text("-")),
       Choice({Text("0"), Sequence({Class({{'1', '9'}}), Digits(0, kMostDigits - 1)})})});
}

Expression JsonNumber() {
  return Sequence({JsonInteger(), Optional(Sequence({Text("."), Digits(1, kMostDigits)})),
                   Optional(Sequence({Class({{'E', 'E'}, {'e', 'e'}}),
                                      Optional(Class({{'+', '+'}, {'-', '-'}})), Digits(1, 2)}))});
}

Expression InBrackets(char open, Expression content, char close) {
  return Then(Then(Text(std::string(1, open)), Blank()),
              Then(std::move(content), Then(Blank(), Text(std::string(1, close)))));
}
Expression InQuotes(Expression content) {
  return Then(Text("\""), Then(std::move(content), Text("\"")));
}

Expression AfterComma(Expression part) { return Then(Text(","), Then(Blank(), std::move(part))); }
Expression Listed(const Expression& part, uint32_t least, uint32_t most) {
  return Listed(part, AfterComma(part), least, most);
}
Expression Listed(Expression first, Expression more, uint32_t least, uint32_t most) {
  if (most == 0) return Text("");
  Expression list = Then(std::move(first), Repeat(std::move(more), least == 0 ? 0 : least - 1,
                                                  most == kUnbounded ? most : most - 1));
  return least == 0 ? Optional(std::move(list)) : list;
}

Expression Member(Expression key, Expression value) {
  return Then(std::move(key), Then(Text(":"), Then(Optional(Text(" ")), std::move(value))));
}

Expression JsonArray() { return InBrackets('[', Listed(Rule(kValueRule), 0, kUnbounded), ']'); }
Expression JsonObject() {
  return InBrackets('{', Listed(Member(JsonString(), Rule(kValueRule)), 0, kUnbounded), '}');
}
Expression JsonValue() {
  return Choice({JsonObject(), JsonArray(), JsonString(), JsonNumber(), Text("true"), Text("false"),
                 Text("null")});
}

}  // namespace tandem::coordinator::grammar
