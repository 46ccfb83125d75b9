#include "common/tokenizer/byte_alphabet.h"

#include <array>

#include "common/base/utf8.h"

namespace tandem::tokenizer {
namespace {

constexpr int kFirstShifted = 0x100;
constexpr int kAlphabetEnd = kFirstShifted + 68;

bool IsVisible(int byte) {
  return (byte >= 0x21 && byte <= 0x7e) || (byte >= 0xa1 && byte <= 0xac) || byte >= 0xae;
}

struct Alphabet {
  std::array<std::string, 256> to_text;
  std::array<int, kAlphabetEnd> to_byte;  // by code point; -1: not of the alphabet

  Alphabet() {
    to_byte.fill(-1);
    int shifted = kFirstShifted;
    for (int byte = 0; byte < 256; ++byte) {
      const int code_point = IsVisible(byte) ? byte : shifted++;
      AppendUtf8Short(static_cast<uint32_t>(code_point), &to_text[byte]);
      to_byte[code_point] = byte;
    }
  }
};

const Alphabet& GetAlphabet() {
  static const Alphabet* alphabet = new Alphabet;
  return *alphabet;
}

}  // namespace

std::string_view ByteToAlphabet(uint8_t byte) { return GetAlphabet().to_text[byte]; }

std::string BytesToAlphabet(std::string_view text) {
  std::string result;
  result.reserve(text.size() * 2);
  for (char c : text) result += ByteToAlphabet(static_cast<uint8_t>(c));
  return result;
}

std::string AlphabetToBytes(std::string_view token) {
  const Alphabet& alphabet = GetAlphabet();
  if (ValidUtf8Prefix(token) != token.size()) return std::string(token);
  std::string result;
  result.reserve(token.size());
  for (size_t at = 0; at < token.size();) {
    const uint8_t first = static_cast<uint8_t>(token[at]);
    const size_t length = Utf8Length(first);
    if (length > 2) return std::string(token);
    const int code_point =
        length == 1 ? first : (first & 0x1f) << 6 | (static_cast<uint8_t>(token[at + 1]) & 0x3f);
    if (code_point >= kAlphabetEnd || alphabet.to_byte[code_point] < 0) return std::string(token);
    result.push_back(static_cast<char>(alphabet.to_byte[code_point]));
    at += length;
  }
  return result;
}

}  // namespace tandem::tokenizer
