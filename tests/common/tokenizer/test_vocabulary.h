// Small vocabularies for tests, made by hand.
#ifndef TANDEM_TESTS_COMMON_TOKENIZER_TEST_VOCABULARY_H_
#define TANDEM_TESTS_COMMON_TOKENIZER_TEST_VOCABULARY_H_

#include <cstdint>
#include <cstdio>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "common/tokenizer/byte_alphabet.h"
#include "common/tokenizer/vocabulary.h"

namespace tandem::tokenizer {

inline void AddToken(VocabularyData* data, std::string text, TokenType type, float score = 0) {
  data->tokens.push_back(std::move(text));
  data->types.push_back(static_cast<int32_t>(type));
  if (data->model == "llama") data->scores.push_back(score);
}

// 256 byte tokens with ids 0 to 255, one more per merge, then <|bos|>, <|eos|> and the user-defined
// <|mine|>. Merges are written in the byte alphabet.
inline VocabularyData ByteLevelVocabulary(const std::vector<std::string>& merges,
                                          const std::string& pre = "gpt-2") {
  VocabularyData data;
  data.model = "gpt2";
  data.pre = pre;
  for (int byte = 0; byte < 256; ++byte) {
    AddToken(&data, std::string(ByteToAlphabet(static_cast<uint8_t>(byte))), TokenType::kNormal);
  }
  for (const std::string& merge : merges) {
    const size_t space = merge.find(' ', 1);
    AddToken(&data, merge.substr(0, space) + merge.substr(space + 1), TokenType::kNormal);
  }
  data.merges = merges;
  data.bos = data.tokens.size();
  AddToken(&data, "<|bos|>", TokenType::kControl);
  data.eos = data.tokens.size();
  AddToken(&data, "<|eos|>", TokenType::kControl);
  AddToken(&data, "<|mine|>", TokenType::kUserDefined);
  return data;
}

// <unk>, <s>, </s> with ids 0 to 2, the 256 byte tokens with ids 3 to 258 if asked, then `pieces`.
inline VocabularyData SentencePieceVocabulary(
    const std::vector<std::pair<std::string, float>>& pieces, bool with_bytes = true) {
  VocabularyData data;
  data.model = "llama";
  AddToken(&data, "<unk>", TokenType::kUnknown);
  AddToken(&data, "<s>", TokenType::kControl);
  AddToken(&data, "</s>", TokenType::kControl);
  for (int byte = 0; with_bytes && byte < 256; ++byte) {
    char text[8];
    std::snprintf(text, sizeof(text), "<0x%02X>", byte);
    AddToken(&data, text, TokenType::kByte);
  }
  for (const auto& [text, score] : pieces) AddToken(&data, text, TokenType::kNormal, score);
  return data;
}

// <pad>, <eos>, <bos>, <unk> with ids 0 to 3, the 256 byte tokens with ids 4 to 259, then
// `characters`, and one more per merge.
inline VocabularyData CharacterVocabulary(const std::vector<std::string>& characters,
                                          const std::vector<std::string>& merges) {
  VocabularyData data;
  data.model = "gemma4";
  for (const char* text : {"<pad>", "<eos>", "<bos>", "<unk>"}) {
    AddToken(&data, text, TokenType::kControl);
  }
  for (int byte = 0; byte < 256; ++byte) {
    char text[8];
    std::snprintf(text, sizeof(text), "<0x%02X>", byte);
    AddToken(&data, text, TokenType::kByte);
  }
  for (const std::string& text : characters) AddToken(&data, text, TokenType::kNormal);
  for (const std::string& merge : merges) {
    const size_t space = merge.find(' ', 1);
    AddToken(&data, merge.substr(0, space) + merge.substr(space + 1), TokenType::kNormal);
  }
  data.merges = merges;
  return data;
}

inline void AppendCharacter(uint32_t code_point, std::string* out) {
  auto put = [&](uint32_t byte) { out->push_back(static_cast<char>(byte)); };
  if (code_point < 0x80) {
    put(code_point);
  } else if (code_point < 0x800) {
    put(0xc0 | code_point >> 6);
    put(0x80 | (code_point & 0x3f));
  } else if (code_point < 0x10000) {
    put(0xe0 | code_point >> 12);
    put(0x80 | (code_point >> 6 & 0x3f));
    put(0x80 | (code_point & 0x3f));
  } else {
    put(0xf0 | code_point >> 18);
    put(0x80 | (code_point >> 12 & 0x3f));
    put(0x80 | (code_point >> 6 & 0x3f));
    put(0x80 | (code_point & 0x3f));
  }
}

// Valid UTF-8 of up to `max_characters`: words, spaces and line ends, and characters of all planes.
// Never U+2581, which SentencePiece cannot tell from a space.
inline std::string RandomText(std::mt19937& random, size_t max_characters) {
  auto below = [&](uint32_t n) { return static_cast<uint32_t>(random() % n); };
  std::string text;
  for (size_t left = random() % (max_characters + 1); left > 0; --left) {
    uint32_t code_point = 0;
    switch (below(8)) {
      case 0:
        code_point = " \t\n\r\v"[below(5)];
        break;
      case 1:
        code_point = below(0x80);
        break;
      case 2:
        code_point = 0x80 + below(0x780);
        break;
      case 3:
        code_point = 0x800 + below(0xd800 - 0x800);
        break;
      case 4:
        code_point = 0xe000 + below(0x110000 - 0xe000);
        break;
      default:
        code_point = 'a' + below(6);
    }
    if (code_point == 0x2581) code_point = ' ';
    AppendCharacter(code_point, &text);
  }
  return text;
}

}  // namespace tandem::tokenizer

#endif  // TANDEM_TESTS_COMMON_TOKENIZER_TEST_VOCABULARY_H_
