// Texts for tokenizers of every kind, there and back, whole and in pieces, and stop strings in
// them. The first byte chooses kind and options.
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "common/base/check.h"
#include "common/base/utf8.h"
#include "common/tokenizer/detokenizer.h"
#include "common/tokenizer/make_tokenizer.h"
#include "common/tokenizer/stop_matcher.h"
#include "tests/common/tokenizer/test_vocabulary.h"
#include "tests/fuzz/target.h"

namespace tandem::fuzz {
namespace {

using tokenizer::Tokenizer;

constexpr size_t kNumKinds = 5;

const Tokenizer& TokenizerOf(size_t kind) {
  static const std::unique_ptr<Tokenizer>* const all = [] {
    const std::vector<std::string> merges = {"a b", "ab c", "Ġ a", "Ġa b", "1 2"};
    auto* made = new std::unique_ptr<Tokenizer>[kNumKinds];
    size_t next = 0;
    for (const char* pre : {"gpt-2", "llama-bpe", "qwen2"}) {
      made[next++] = tokenizer::MakeTokenizer(tokenizer::ByteLevelVocabulary(merges, pre)).value();
    }
    made[next++] = tokenizer::MakeTokenizer(
                       tokenizer::SentencePieceVocabulary(
                           {{"▁", -1}, {"a", -2}, {"b", -3}, {"ab", -1.5f}, {"▁ab", -1.2f}}))
                       .value();
    made[next++] = tokenizer::MakeTokenizer(
                       tokenizer::CharacterVocabulary({"a", "b", "▁", "é"}, {"a b", "▁ ab"}))
                       .value();
    return made;
  }();
  return *all[kind];
}

void CheckPieces(const Tokenizer& tokenizer, const std::vector<TokenId>& ids) {
  const tokenizer::DecodeOptions options{.skip_special = false, .at_start = true};
  const std::string whole = tokenizer::Decode(tokenizer, ids, options).value();
  TANDEM_CHECK(ValidUtf8Prefix(whole) == whole.size());
  tokenizer::IncrementalDetokenizer pieces(tokenizer, options);
  std::string text;
  for (const TokenId id : ids) text += pieces.Append(id).value();
  TANDEM_CHECK(text + pieces.Flush() == whole) << "pieces give another text";
}

// The text itself says where it is cut, and what stops it.
void CheckStops(const std::string& text) {
  if (text.size() < 4) return;
  const size_t length = 1 + static_cast<uint8_t>(text[0]) % 3;
  auto matcher = tokenizer::StopMatcher::Create({text.substr(1, length), "ab"}, text[0] % 2 == 0);
  if (!matcher.ok()) return;
  std::string out;
  const size_t step = 1 + static_cast<uint8_t>(text[1]) % 5;
  for (size_t at = 0; at < text.size(); at += step) out += matcher->Append(text.substr(at, step));
  out += matcher->Flush();
  TANDEM_CHECK(text.starts_with(out)) << "text that never came";
  TANDEM_CHECK(matcher->stopped() || out == text) << "text is lost";
}

}  // namespace

bool Take(std::span<const uint8_t> input) {
  if (input.empty()) return false;
  const std::string text(input.begin() + 1, input.end());
  const size_t kind = input[0] % kNumKinds;
  const Tokenizer& tokenizer = TokenizerOf(kind);
  const tokenizer::EncodeOptions options{.add_special = (input[0] & 0x20) != 0,
                                         .parse_special = (input[0] & 0x40) != 0};
  const auto ids = tokenizer.Encode(text, options);
  if (!ids.ok()) {
    TANDEM_CHECK(ValidUtf8Prefix(text) < text.size() || kind >= 3) << ids.status();
    return false;
  }
  for (const TokenId id : *ids) TANDEM_CHECK(id >= 0 && id < tokenizer.vocab_size()) << id;
  CheckPieces(tokenizer, *ids);
  const bool is_byte_level = kind < 3;
  if (is_byte_level && !options.add_special) {
    TANDEM_CHECK(tokenizer::Decode(tokenizer, *ids, {.skip_special = false}).value() == text)
        << "another text comes back";
  }
  CheckStops(text);
  return true;
}

std::vector<Bytes> Seeds() {
  std::vector<Bytes> seeds;
  for (size_t kind = 0; kind < 2 * kNumKinds; ++kind) {
    const std::string text = "ab abc  12 <|eos|><|mine|>\r\n don't é\u3042\U0001f600 end";
    Bytes& seed = seeds.emplace_back(text.begin(), text.end());
    seed.insert(seed.begin(), static_cast<uint8_t>(kind < kNumKinds ? kind : kind * 33));
  }
  return seeds;
}

}  // namespace tandem::fuzz
