// Language: the strings of a grammar, to ask for and to draw at random.
#ifndef TANDEM_TESTS_COORDINATOR_GRAMMAR_LANGUAGE_H_
#define TANDEM_TESTS_COORDINATOR_GRAMMAR_LANGUAGE_H_

#include <cstdint>
#include <optional>
#include <random>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "coordinator/grammar/automaton.h"
#include "gtest/gtest.h"

namespace tandem::coordinator::grammar {

class Language {
 public:
  explicit Language(const absl::StatusOr<Grammar>& grammar) : automaton_(Made(grammar)) {}

  bool Has(std::string_view text) {
    Automaton::State state = automaton_.start();
    for (const char c : text) state = automaton_.Next(state, static_cast<uint8_t>(c));
    return automaton_.CanEnd(state);
  }
  // A string of it, drawn at random; nothing if it became longer than `most` bytes.
  std::optional<std::string> Draw(std::mt19937& random, size_t most = 400) {
    std::string text;
    Automaton::State state = automaton_.start();
    while (!automaton_.CanEnd(state) || random() % 8 != 0) {
      std::vector<uint8_t> bytes;
      for (int byte = 0; byte < 256; ++byte) {
        const auto next = automaton_.Next(state, static_cast<uint8_t>(byte));
        if (next != Automaton::kDead) bytes.push_back(static_cast<uint8_t>(byte));
      }
      if (bytes.empty()) {
        EXPECT_TRUE(automaton_.CanEnd(state)) << "nothing may follow " << text;
        break;
      }
      text += static_cast<char>(bytes[random() % bytes.size()]);
      state = automaton_.Next(state, static_cast<uint8_t>(text.back()));
      if (text.size() > most) return std::nullopt;
    }
    return text;
  }

 private:
  static Automaton Made(const absl::StatusOr<Grammar>& grammar) {
    EXPECT_TRUE(grammar.ok()) << grammar.status();
    auto network = Compile(*grammar);
    EXPECT_TRUE(network.ok()) << network.status();
    return Automaton(*std::move(network));
  }

  Automaton automaton_;
};

}  // namespace tandem::coordinator::grammar

#endif  // TANDEM_TESTS_COORDINATOR_GRAMMAR_LANGUAGE_H_
