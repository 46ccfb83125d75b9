// Parts of JSON strings that are not just any string.
#include <algorithm>
#include <map>
#include <optional>
#include <utility>

#include "absl/strings/str_format.h"
#include "common/base/utf8.h"
#include "coordinator/grammar/json.h"

namespace tandem::coordinator::grammar {
namespace {

constexpr uint32_t kLastCharacter = 0x10ffff;

// How a character stands in a JSON string, if not as itself.
std::optional<std::string> EscapeOf(uint32_t character) {
  switch (character) {
    case '"':
      return "\\\"";
    case '\\':
      return "\\\\";
    case '\b':
      return "\\b";
    case '\f':
      return "\\f";
    case '\n':
      return "\\n";
    case '\r':
      return "\\r";
    case '\t':
      return "\\t";
    default:
      break;
  }
  if (character < ' ') return absl::StrFormat("\\u%04x", character);
  return std::nullopt;
}

// The ranges without `characters`, which are ascending.
std::vector<CharacterRange> Without(const std::vector<CharacterRange>& ranges,
                                    const std::vector<uint32_t>& characters) {
  std::vector<CharacterRange> left;
  for (CharacterRange range : ranges) {
    for (const uint32_t c : characters) {
      if (c < range.first || c > range.last) continue;
      if (c > range.first) left.push_back({range.first, c - 1});
      range.first = c + 1;
    }
    if (range.first <= range.last) left.push_back(range);
  }
  return left;
}

Expression QuotedClass(const std::vector<CharacterRange>& ranges) {
  std::vector<Expression> choices;
  std::vector<uint32_t> escaped;
  for (const CharacterRange& range : ranges) {
    // None beyond the backslash is escaped.
    for (uint32_t c = range.first; c <= std::min<uint32_t>(range.last, '\\'); ++c) {
      const std::optional<std::string> escape = EscapeOf(c);
      if (!escape.has_value()) continue;
      escaped.push_back(c);
      choices.push_back(Text(*escape));
    }
  }
  choices.push_back(Class(Without(ranges, escaped)));
  return Choice(std::move(choices));
}

// A set of keys by their characters.
struct KeyTree {
  std::map<uint32_t, KeyTree> next;
  bool is_key = false;
};

// The code point at `*at`, which moves behind it. REQUIRES: valid UTF-8.
uint32_t NextCharacter(const std::string& text, size_t* at) {
  const auto byte = [&](size_t i) -> uint32_t { return static_cast<uint8_t>(text[*at + i]); };
  const size_t size = Utf8Length(static_cast<uint8_t>(byte(0)));
  uint32_t character = size == 1 ? byte(0) : byte(0) & (0x7fu >> size);
  for (size_t i = 1; i < size; ++i) character = character << 6 | (byte(i) & 0x3f);
  *at += size;
  return character;
}

// Characters that stand for themselves.
std::vector<CharacterRange> Plain() { return {{' ', '!'}, {'#', '['}, {']', kLastCharacter}}; }

// Both, without the copies that a list of them would take.
Expression Pair(Expression first, Expression second) {
  Expression pair = Sequence({});
  pair.parts.push_back(std::move(first));
  pair.parts.push_back(std::move(second));
  return pair;
}

// What may follow a prefix of keys, up to the closing quote.
Expression RestExcept(const KeyTree& tree) {
  std::vector<Expression> choices;
  std::vector<uint32_t> taken;
  for (const auto& [character, next] : tree.next) {
    taken.push_back(character);
    const Expression only = Class(Without({{character, character}}, {'"', '\\'}));
    choices.push_back(Pair(only, RestExcept(next)));
  }
  choices.push_back(Pair(Class(Without(Plain(), taken)), Repeat(Class(Plain()), 0)));
  if (!tree.is_key) choices.push_back(Text(""));
  return Choice(std::move(choices));
}

}  // namespace

Expression Quoted(const Expression& raw) {
  Expression quoted = raw;
  if (raw.kind == Expression::Kind::kClass) return QuotedClass(raw.ranges);
  if (raw.kind == Expression::Kind::kText) {
    quoted.text.clear();
    for (const char c : raw.text) {
      const auto escape = EscapeOf(static_cast<uint8_t>(c));
      quoted.text += escape.has_value() ? *escape : std::string(1, c);
    }
  }
  for (Expression& part : quoted.parts) part = Quoted(part);
  return quoted;
}

Expression StringExcept(const std::vector<std::string>& keys) {
  KeyTree tree;
  for (const std::string& key : keys) {
    KeyTree* node = &tree;
    for (size_t at = 0; at < key.size();) node = &node->next[NextCharacter(key, &at)];
    node->is_key = true;
  }
  return Sequence({Text("\""), RestExcept(tree), Text("\"")});
}

}  // namespace tandem::coordinator::grammar
