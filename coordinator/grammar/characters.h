// Code points, and sets of them as ranges. Internal to this folder.
#ifndef TANDEM_COORDINATOR_GRAMMAR_CHARACTERS_H_
#define TANDEM_COORDINATOR_GRAMMAR_CHARACTERS_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "coordinator/grammar/expression.h"

namespace tandem::coordinator::grammar {

inline constexpr uint32_t kLastCharacter = 0x10ffff;

// Ascending and apart from each other, as a Class needs them.
using CharacterRanges = std::vector<CharacterRange>;

inline bool IsSurrogate(uint32_t code) { return code >= 0xd800 && code <= 0xdfff; }

// The code point at `*at`, which moves behind it. REQUIRES: valid UTF-8.
uint32_t NextCharacter(std::string_view text, size_t* at);
// REQUIRES: no surrogate.
void AppendCharacter(uint32_t character, std::string* out);

// The same characters, of ranges in any order.
CharacterRanges Normalized(CharacterRanges ranges);
// All others.
CharacterRanges Complement(const CharacterRanges& ranges);

}  // namespace tandem::coordinator::grammar

#endif  // TANDEM_COORDINATOR_GRAMMAR_CHARACTERS_H_
