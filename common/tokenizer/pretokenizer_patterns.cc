// Sources: the tokenizer.json files of GPT-2, Llama 3, Qwen2 and DeepSeek LLM; names as GGUF files
// write them (GGUF specification, tokenizer.ggml.pre).
//
// White space is spelled out as the Unicode property White_Space: PCRE2's own \s differs (U+180E).
// English suffixes are spelled out, too: caseless matching would fold U+017F to s.
#include "common/tokenizer/pretokenizer_patterns.h"

namespace tandem::tokenizer {
namespace {

// The inside of a character class.
#define WS                                                                                    \
  "\\x{9}-\\x{d}\\x{20}\\x{85}\\x{a0}\\x{1680}\\x{2000}-\\x{200a}\\x{2028}\\x{2029}\\x{202f}" \
  "\\x{205f}\\x{3000}"
#define SPACE "[" WS "]"
#define NOT_SPACE "[^" WS "]"
#define SUFFIXES "'(?:[sS]|[tT]|[rR][eE]|[vV][eE]|[mM]|[lL][lL]|[dD])"

constexpr std::string_view kGpt2 = "'(?:s|t|re|ve|m|ll|d)| ?\\p{L}+| ?\\p{N}+| ?[^" WS
                                   "\\p{L}\\p{N}]+|" SPACE "+(?!" NOT_SPACE ")|" SPACE "+";

// Llama 3 and Qwen2 differ in the length of a number alone.
#define LLAMA3_LIKE(number)                                                                     \
  SUFFIXES "|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|" number "| ?[^" WS "\\p{L}\\p{N}]+[\\r\\n]*|" SPACE \
           "*[\\r\\n]+|" SPACE "+(?!" NOT_SPACE ")|" SPACE "+"

constexpr std::string_view kLlama3 = LLAMA3_LIKE("\\p{N}{1,3}");
constexpr std::string_view kQwen2 = LLAMA3_LIKE("\\p{N}");

// Cased letters, as DeepSeek LLM's tokenizer.json lists them.
constexpr std::string_view kDeepseekLetters = SPACE
    "?[A-Za-z\\x{b5}\\x{c0}-\\x{d6}\\x{d8}-\\x{f6}\\x{f8}-\\x{1ba}\\x{1bc}-\\x{1bf}"
    "\\x{1c4}-\\x{293}\\x{295}-\\x{2af}\\x{370}-\\x{373}\\x{376}\\x{377}\\x{37b}-\\x{37d}\\x{37f}"
    "\\x{386}\\x{388}-\\x{38a}\\x{38c}\\x{38e}-\\x{3a1}\\x{3a3}-\\x{3f5}\\x{3f7}-\\x{481}"
    "\\x{48a}-\\x{52f}\\x{531}-\\x{556}\\x{10a0}-\\x{10c5}\\x{13a0}-\\x{13f5}\\x{13f8}-\\x{13fd}"
    "\\x{1c90}-\\x{1cba}\\x{1cbd}-\\x{1cbf}\\x{1d00}-\\x{1d2b}\\x{1d6b}-\\x{1d77}"
    "\\x{1d79}-\\x{1d9a}\\x{1e00}-\\x{1f15}\\x{1f18}-\\x{1f1d}\\x{1f20}-\\x{1f45}"
    "\\x{1f48}-\\x{1f4d}\\x{1f50}-\\x{1f57}\\x{1f59}\\x{1f5b}\\x{1f5d}\\x{1f5f}-\\x{1f7d}"
    "\\x{1f80}-\\x{1fb4}\\x{1fb6}-\\x{1fbc}\\x{1fbe}\\x{1fc2}-\\x{1fc4}\\x{1fc6}-\\x{1fcc}"
    "\\x{1fd0}-\\x{1fd3}\\x{1fd6}-\\x{1fdb}\\x{1fe0}-\\x{1fec}\\x{1ff2}-\\x{1ff4}"
    "\\x{1ff6}-\\x{1ffc}\\x{2102}\\x{2107}\\x{210a}-\\x{2113}\\x{2115}\\x{2119}-\\x{211d}\\x{2124}"
    "\\x{2126}\\x{2128}\\x{212a}-\\x{212d}\\x{212f}-\\x{2134}\\x{2139}\\x{213c}-\\x{213f}"
    "\\x{2145}-\\x{2149}\\x{214e}\\x{2183}\\x{2184}\\x{2c00}-\\x{2c7b}\\x{2c7e}-\\x{2ce4}"
    "\\x{2ceb}-\\x{2cee}\\x{2cf2}\\x{2cf3}\\x{a640}-\\x{a66d}\\x{a680}-\\x{a69b}\\x{a722}-\\x{a76f}"
    "\\x{a771}-\\x{a787}\\x{a78b}-\\x{a78e}\\x{ab70}-\\x{abbf}\\x{fb00}-\\x{fb06}"
    "\\x{fb13}-\\x{fb17}\\x{ff21}-\\x{ff3a}\\x{ff41}-\\x{ff5a}\\x{10400}-\\x{1044f}"
    "\\x{104b0}-\\x{104d3}\\x{104d8}-\\x{104fb}\\x{10c80}-\\x{10cb2}\\x{10cc0}-\\x{10cf2}"
    "\\x{118a0}-\\x{118df}\\x{1e900}-\\x{1e943}]+";
constexpr std::string_view kDeepseekPunctuation =
    SPACE "?[!-/:-~\\x{ff01}-\\x{ff0f}\\x{ff1a}-\\x{ff5e}\\x{2018}-\\x{201f}\\x{3000}-\\x{3002}]+";
// "\s+$" of the source; the look-behind and the possessive + only keep a long run of spaces linear.
constexpr std::string_view kDeepseekTrailingSpace = "(?<!" SPACE ")" SPACE "++\\z";
constexpr std::string_view kDeepseekCjk =
    "[\\x{4e00}-\\x{9fa5}\\x{800}-\\x{4e00}\\x{ac00}-\\x{d7ff}]+";

const std::vector<PretokenizerSpec>& Specs() {
  static const auto* specs = new std::vector<PretokenizerSpec>{
      {.names = {"gpt-2"}, .patterns = {kGpt2}},
      {.names = {"llama-bpe", "llama3", "llama-v3"},
       .patterns = {kLlama3},
       .whole_words_first = true,
       .adds_bos = true},
      {.names = {"qwen2", "deepseek-r1-qwen"}, .patterns = {kQwen2}},
      {.names = {"deepseek-llm"},
       .patterns = {"[\\r\\n]", kDeepseekLetters, kDeepseekPunctuation, kDeepseekTrailingSpace,
                    kDeepseekCjk, "\\p{N}+"}},
  };
  return *specs;
}

}  // namespace

const PretokenizerSpec* FindPretokenizer(std::string_view name) {
  for (const PretokenizerSpec& spec : Specs()) {
    for (std::string_view known : spec.names) {
      if (known == name) return &spec;
    }
  }
  return nullptr;
}

std::string SupportedPretokenizers() {
  std::string list;
  for (const PretokenizerSpec& spec : Specs()) {
    for (std::string_view name : spec.names) {
      if (!list.empty()) list += ", ";
      list += name;
    }
  }
  return list;
}

}  // namespace tandem::tokenizer
