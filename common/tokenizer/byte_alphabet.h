// GPT-2's printable alphabet for bytes: each of the 256 bytes is written as one visible character,
// so that token texts and merges hold no spaces or control characters.
//
// Bytes that are visible in Latin-1 (0x21-0x7e, 0xa1-0xac, 0xae-0xff) are mapped to themselves; the
// other 68, in ascending order, are U+0100 and on. Source: OpenAI's GPT-2 encoder
// (bytes_to_unicode).
#ifndef TANDEM_COMMON_TOKENIZER_BYTE_ALPHABET_H_
#define TANDEM_COMMON_TOKENIZER_BYTE_ALPHABET_H_

#include <cstdint>
#include <string>
#include <string_view>

namespace tandem::tokenizer {

// The character of `byte`, as UTF-8 of one or two bytes.
std::string_view ByteToAlphabet(uint8_t byte);

// `text` in the alphabet.
std::string BytesToAlphabet(std::string_view text);

// The bytes that `token` writes. A token with characters outside the alphabet (a special token with
// a space in its name, or an invalid one) is returned as it is.
std::string AlphabetToBytes(std::string_view token);

}  // namespace tandem::tokenizer

#endif  // TANDEM_COMMON_TOKENIZER_BYTE_ALPHABET_H_
