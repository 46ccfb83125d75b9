// JSON schemas, grammars in GBNF, and regular expressions, these also after thoughts, from bytes to
// an automaton that reads some of what it allows. The first byte chooses which.
#include <algorithm>
#include <string>
#include <string_view>
#include <utility>

#include "common/base/check.h"
#include "coordinator/grammar/automaton.h"
#include "coordinator/grammar/gbnf.h"
#include "coordinator/grammar/json_schema.h"
#include "coordinator/grammar/reasoning.h"
#include "coordinator/grammar/text_forms.h"
#include "tests/fuzz/target.h"

namespace tandem::fuzz {
namespace {

namespace grammar = coordinator::grammar;

void CheckRefusal(const absl::Status& status) {
  TANDEM_CHECK(status.code() == absl::StatusCode::kInvalidArgument) << status;
  TANDEM_CHECK(!status.message().empty() && status.message().size() < 1000) << status;
  TANDEM_CHECK(status.message().find('\n') == absl::string_view::npos) << status;
}

// A text that the automaton allows, always by the first or the last byte that may follow.
void Walk(grammar::Automaton& automaton) {
  automaton.AllowWork(1 << 20);
  grammar::Automaton::State state = automaton.start();
  for (int step = 0; step < 64; ++step) {
    int chosen = -1;
    for (int i = 0; i < 256 && chosen < 0; ++i) {
      const int byte = step % 2 == 0 ? i : 255 - i;
      const auto next = automaton.Next(state, static_cast<uint8_t>(byte));
      if (next != grammar::Automaton::kDead) chosen = byte;
    }
    if (chosen < 0) {
      TANDEM_CHECK(automaton.CanEnd(state) || automaton.want() != grammar::Automaton::Want::kNone)
          << "a text comes to no end";
      return;
    }
    state = automaton.Next(state, static_cast<uint8_t>(chosen));
  }
}

// Which begin and end with parts of the text.
absl::StatusOr<grammar::Grammar> AfterThoughts(std::string_view text, grammar::Grammar form) {
  const std::string start(text.substr(0, text.size() % 7));
  const std::string end(text.substr(start.size(), text.size() % 11));
  return grammar::WithReasoning({.start = start, .end = end, .answer_start = start},
                                std::move(form));
}

absl::StatusOr<grammar::Grammar> FormOf(int kind, const std::string& text) {
  if (kind == 0) return grammar::GrammarOfSchema(text);
  if (kind == 3) return grammar::GrammarOfGbnf(text);
  auto made = grammar::GrammarOfRegex(text);
  if (made.ok() && kind == 2) return AfterThoughts(text, *std::move(made));
  return made;
}

Bytes Seed(uint8_t first, std::string_view text) {
  Bytes bytes(text.size() + 1, first);
  std::ranges::copy(text, bytes.begin() + 1);
  return bytes;
}

}  // namespace

bool Take(std::span<const uint8_t> input) {
  if (input.empty()) return false;
  const std::string text(input.begin() + 1, input.end());
  auto made = FormOf(input[0] % 4, text);
  if (!made.ok()) {
    CheckRefusal(made.status());
    return false;
  }
  auto network = grammar::Compile(*made);
  if (!network.ok()) {
    CheckRefusal(network.status());
    return false;
  }
  grammar::Automaton automaton(*std::move(network));
  Walk(automaton);
  return true;
}

std::vector<Bytes> Seeds() {
  return {
      Seed(0, R"({"type": "object", "properties": {"a": {"type": "integer", "minimum": 0},
          "b": {"enum": ["x", 1.50, null]}, "c": {"$ref": "#/$defs/d"}}, "required": ["a"],
          "additionalProperties": true, "$defs": {"d": {"type": "array", "items":
          {"$ref": "#/$defs/d"}, "minItems": 1}}})"),
      Seed(0, R"({"allOf": [{"type": "string"}, {"anyOf": [{"pattern": "^a[^b]{2,3}|\\d$"},
          {"format": "date-time"}, {"minLength": 2, "maxLength": 3}]}]})"),
      Seed(0, R"({"prefixItems": [{"exclusiveMinimum": -1.5, "maximum": 2e1}], "items": false})"),
      Seed(2, "[a-c]{2}|think>"),
      Seed(3, R"g(root ::= (term "+"?){1,3} # sums
          | [^a-c\x41\]] .
term ::= "\u00e9" | "(" root ")" | [0-9]* )g"),
      Seed(1, "^(?:a|[b-d\\]]+?)*\\u00e9{1,3}(?<n>.|\\W|[^\\s\\x41])$"),
  };
}

}  // namespace tandem::fuzz
