#include "common/tokenizer/special_tokens.h"

#include <string>
#include <utility>

namespace tandem::tokenizer {
namespace {

bool IsAsciiSpace(char c) { return c == ' ' || (c >= '\t' && c <= '\r'); }

}  // namespace

SpecialTokenSplitter::SpecialTokenSplitter(const Vocabulary& vocabulary)
    : vocabulary_(vocabulary), user_defined_(MakeMatcher(false)), all_(MakeMatcher(true)) {}

SpecialTokenSplitter::Matcher SpecialTokenSplitter::MakeMatcher(bool with_control) const {
  Matcher matcher;
  std::vector<std::string> reversed;
  for (TokenId id = 0; id < vocabulary_.size(); ++id) {
    const TokenType type = vocabulary_.type(id);
    const bool control = type == TokenType::kControl || type == TokenType::kUnknown;
    if (type != TokenType::kUserDefined && !(with_control && control)) continue;
    const std::string_view text = vocabulary_.text(id);
    reversed.emplace_back(text.rbegin(), text.rend());
    matcher.ids.push_back(id);
  }
  matcher.automaton = AhoCorasick(reversed);
  return matcher;
}

std::vector<Fragment> SpecialTokenSplitter::Split(std::string_view text, bool parse_special) const {
  const Matcher& matcher = parse_special ? all_ : user_defined_;
  std::vector<Fragment> fragments;
  if (text.empty()) return fragments;
  if (matcher.automaton.empty()) return {Fragment{kNoToken, text}};

  // Positions where a token starts, last first, with the longest token there.
  std::vector<std::pair<size_t, TokenId>> starts;
  AhoCorasick::State state = AhoCorasick::kStart;
  for (size_t at = text.size(); at-- > 0;) {
    state = matcher.automaton.Next(state, static_cast<uint8_t>(text[at]));
    const int32_t match = matcher.automaton.LongestMatch(state);
    if (match >= 0) starts.emplace_back(at, matcher.ids[match]);
  }

  size_t done = 0;
  for (auto it = starts.rbegin(); it != starts.rend(); ++it) {
    const size_t start = it->first;
    const TokenId token = it->second;
    if (start < done) continue;
    if (start > done) fragments.push_back({kNoToken, text.substr(done, start - done)});
    fragments.push_back({token, {}});
    done = start + vocabulary_.text(token).size();
    if (vocabulary_.StripsAfter(token)) {
      while (done < text.size() && IsAsciiSpace(text[done])) ++done;
    }
  }
  if (done < text.size()) fragments.push_back({kNoToken, text.substr(done)});
  return fragments;
}

}  // namespace tandem::tokenizer
