// Parts of JSON strings that are not just any string.
#include <algorithm>
#include <map>
#include <utility>

#include "absl/strings/str_format.h"
#include "coordinator/grammar/characters.h"
#include "coordinator/grammar/json.h"

namespace tandem::coordinator::grammar {
namespace {

// The letter after the backslash, of a character that does not stand for itself; 0: it has none.
char ShortEscapeOf(uint32_t character) {
  switch (character) {
    case '"':
    case '\\':
      return static_cast<char>(character);
    case '\b':
      return 'b';
    case '\f':
      return 'f';
    case '\n':
      return 'n';
    case '\r':
      return 'r';
    case '\t':
      return 't';
    default:
      return 0;
  }
}
bool IsEscaped(uint32_t character) { return character < ' ' || ShortEscapeOf(character) != 0; }

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
  std::vector<uint32_t> escaped;
  std::vector<CharacterRange> letters, digits[2];  // after "\", "\u000" and "\u001"
  for (const CharacterRange& range : ranges) {
    // None beyond the backslash is escaped.
    for (uint32_t c = range.first; c <= std::min<uint32_t>(range.last, '\\'); ++c) {
      if (!IsEscaped(c)) continue;
      escaped.push_back(c);
      const auto letter = static_cast<uint32_t>(ShortEscapeOf(c));
      const auto digit = static_cast<uint32_t>("0123456789abcdef"[c % 16]);
      (letter != 0 ? letters : digits[c / 16])
          .push_back(letter != 0 ? CharacterRange{letter, letter} : CharacterRange{digit, digit});
    }
  }
  Expression choice = Choice({});
  choice.parts.push_back(Class(Without(ranges, escaped)));
  const auto add = [&](const char* start, std::vector<CharacterRange>& ends) {
    if (ends.empty()) return;
    std::ranges::sort(ends, {}, &CharacterRange::first);
    choice.parts.push_back(Then(Text(start), Class(std::move(ends))));
  };
  add("\\", letters);
  add("\\u000", digits[0]);
  add("\\u001", digits[1]);
  return choice.parts.size() == 1 ? std::move(choice.parts[0]) : choice;
}
std::string QuotedText(const std::string& text) {
  std::string quoted;
  for (const char c : text) {
    const auto byte = static_cast<uint8_t>(c);
    if (!IsEscaped(byte)) {
      quoted += c;
    } else if (const char letter = ShortEscapeOf(byte); letter != 0) {
      quoted += {'\\', letter};
    } else {
      quoted += absl::StrFormat("\\u%04x", byte);
    }
  }
  return quoted;
}

// A set of keys by their characters.
struct KeyTree {
  std::map<uint32_t, KeyTree> next;
  bool is_key = false;
};

// A character that stands for itself and is none of `taken`.
Expression PlainExcept(const std::vector<uint32_t>& taken) {
  constexpr uint32_t kLastAscii = 0x7f;
  Expression ascii = Class(Without({{' ', '!'}, {'#', '['}, {']', kLastAscii}}, taken));
  const bool beyond = !taken.empty() && taken.back() > kLastAscii;
  return Choice({std::move(ascii), beyond
                                       ? Class(Without({{kLastAscii + 1, kLastCharacter}}, taken))
                                       : Rule(kBeyondAsciiRule)});
}

// What may follow a prefix of keys, up to the closing quote.
Expression RestExcept(const KeyTree& tree) {
  Expression choice = Choice({});
  std::vector<uint32_t> taken;
  for (const auto& [character, next] : tree.next) {
    taken.push_back(character);
    if (IsEscaped(character)) continue;
    choice.parts.push_back(Then(Class({{character, character}}), RestExcept(next)));
  }
  choice.parts.push_back(Then(PlainExcept(taken), Rule(kPlainTextRule)));
  if (!tree.is_key) choice.parts.push_back(Text(""));
  return choice;
}

}  // namespace

Expression Quoted(const Expression& raw) {
  if (raw.kind == Expression::Kind::kClass) return QuotedClass(raw.ranges);
  if (raw.kind == Expression::Kind::kText) return Text(QuotedText(raw.text));
  Expression quoted{.kind = raw.kind, .least = raw.least, .most = raw.most, .rule = raw.rule};
  quoted.parts.reserve(raw.parts.size());
  for (const Expression& part : raw.parts) quoted.parts.push_back(Quoted(part));
  return quoted;
}

Expression StringExcept(const std::vector<std::string>& keys) {
  KeyTree tree;
  for (const std::string& key : keys) {
    KeyTree* node = &tree;
    for (size_t at = 0; at < key.size();) node = &node->next[NextCharacter(key, &at)];
    node->is_key = true;
  }
  return InQuotes(RestExcept(tree));
}

}  // namespace tandem::coordinator::grammar
