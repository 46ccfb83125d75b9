// Sources: the tokenizer.json files of the models (or, where the model predates them, its tiktoken
// file); names and which name shares whose patterns as GGUF files and llama.cpp's list of
// pre-tokenizers have them (GGUF specification, tokenizer.ggml.pre; llama.cpp,
// src/llama-vocab.cpp). Unicode normalisation that some tokenizer.json ask for is not applied: no
// GGUF engine does.
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
// The end of nearly every pattern: the last of several spaces belongs to the following word.
#define SPACES SPACE "+(?!" NOT_SPACE ")|" SPACE "+"

constexpr std::string_view kGpt2 =
    "'(?:s|t|re|ve|m|ll|d)| ?\\p{L}+| ?\\p{N}+| ?[^" WS "\\p{L}\\p{N}]+|" SPACES;
constexpr std::string_view kDigit = "\\p{N}";
constexpr std::string_view kThreeAsciiDigits = "[0-9][0-9][0-9]";
constexpr std::string_view kLineEnd = "[\\r\\n]";

// Llama 3 and its many descendants differ in the length of a number, and little else.
#define PREFIXED_WORD "[^\\r\\n\\p{L}\\p{N}]?\\p{L}+"
#define PUNCTUATION " ?[^" WS "\\p{L}\\p{N}]+"
#define LINES SPACE "*[\\r\\n]+"
#define LLAMA3_LIKE(number) \
  SUFFIXES "|" PREFIXED_WORD "|" number "|" PUNCTUATION "[\\r\\n]*|" LINES "|" SPACES

constexpr std::string_view kLlama3 = LLAMA3_LIKE("\\p{N}{1,3}");
constexpr std::string_view kQwen2 = LLAMA3_LIKE("\\p{N}");
// Marks belong to letters.
constexpr std::string_view kQwen35 =
    SUFFIXES "|[^\\r\\n\\p{L}\\p{N}]?[\\p{L}\\p{M}]+|\\p{N}| ?[^" WS
             "\\p{L}\\p{M}\\p{N}]+[\\r\\n]*|" LINES "|" SPACES;
// One line end at a time; a word does not backtrack over the character before it.
constexpr std::string_view kBailing =
    SUFFIXES "|[^\\r\\n\\p{L}\\p{N}]?+\\p{L}+|\\p{N}| ?[^" WS "\\p{L}\\p{N}]++[\\r\\n]*|" SPACE
             "*[\\r\\n]|" SPACES;
// Line ends never follow punctuation.
constexpr std::string_view kSeedCoder =
    SUFFIXES "|" PREFIXED_WORD "|\\p{N}| ?[^" WS "\\p{L}\\p{N}\\r\\n]+|" LINES "|" SPACES;

// GPT-4o's words: small letters after capital ones, or capital ones alone. Letters without case and
// marks count as both.
#define CAPITALS "[\\p{Lu}\\p{Lt}\\p{Lm}\\p{Lo}\\p{M}]"
#define SMALL "[\\p{Ll}\\p{Lm}\\p{Lo}\\p{M}]"
#define CASED_WORDS(suffix)                              \
  "[^\\r\\n\\p{L}\\p{N}]?" CAPITALS "*" SMALL "+" suffix \
  "|"                                                    \
  "[^\\r\\n\\p{L}\\p{N}]?" CAPITALS "+" SMALL "*" suffix
constexpr std::string_view kGpt4o =
    CASED_WORDS("(?:" SUFFIXES ")?") "|\\p{N}{1,3}|" PUNCTUATION "[\\r\\n/]*|" LINES "|" SPACES;
constexpr std::string_view kTekken =
    CASED_WORDS("") "|\\p{N}|" PUNCTUATION "[\\r\\n/]*|" LINES "|" SPACES;

// Falcon's punctuation: Unicode's, and ASCII's symbols (Python's string.punctuation). The fallback
// named "default" lacks the grave accent.
#define ASCII_SYMBOLS "$+<=>^~|"
constexpr std::string_view kFalconPunctuation = "[\\p{P}" ASCII_SYMBOLS "`]+";
constexpr std::string_view kDefaultPunctuation = "[\\p{P}" ASCII_SYMBOLS "]+";
constexpr std::string_view kNumber = "\\p{N}+";

// BLOOM: words are the text between spaces and sentence marks. (The parentheses and the bar are
// members of the class, in its tokenizer.json, too.)
constexpr std::string_view kBloom =
    " ?[^(" WS "|.,!?\\x{2026}\\x{3002}\\x{ff0c}\\x{3001}\\x{964}\\x{6d4}\\x{60c})]+";

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
constexpr std::string_view kDeepseekCoderWord = SPACE "?\\p{L}+";
constexpr std::string_view kDeepseekCoderPunctuation = SPACE "?\\p{P}+";

// DeepSeek-V3: numbers, then Chinese and Japanese, then the rest.
constexpr std::string_view kUpToThreeDigits = "\\p{N}{1,3}";
constexpr std::string_view kDeepseekV3Cjk = "[\\x{4e00}-\\x{9fa5}\\x{3040}-\\x{30ff}]+";
constexpr std::string_view kDeepseekV3 =
    "[!-/:-@\\[-`{-~][A-Za-z]+|[^\\r\\n\\p{L}\\p{P}\\p{S}]?[\\p{L}\\p{M}]+| "
    "?[\\p{P}\\p{S}]+[\\r\\n]*"
    "|" LINES "|" SPACES;

const std::vector<PretokenizerSpec>& Specs() {
  static const auto* specs = new std::vector<PretokenizerSpec>{
      {.names = {"gpt-2", "phi-2", "mpt", "olmo", "jais", "trillion", "gigachat", "mellum",
                 "jina-es", "jina-de", "jina-v2-es", "jina-v2-de", "a.x-4.0", "modern-bert",
                 "exaone4", "granite-docling"},
       .patterns = {kGpt2}},
      {.names = {"llama-bpe", "llama3", "llama-v3", "falcon3", "falcon-h1", "pixtral", "midm-2.0",
                 "lfm2", "jina-v5-nano"},
       .patterns = {kLlama3},
       .whole_words_first = true,
       .adds_bos = true},
      {.names = {"dbrx", "smaug-bpe", "chatglm-bpe"}, .patterns = {kLlama3}},
      {.names = {"glm4", "glm5"}, .patterns = {kLlama3}, .whole_words_first = true},
      {.names = {"qwen2", "deepseek-r1-qwen", "stablelm2", "megrez", "hunyuan", "grok-2", "kormo",
                 "solar-open"},
       .patterns = {kQwen2}},
      {.names = {"qwen35"}, .patterns = {kQwen35}},
      {.names = {"bailingmoe", "bailingmoe2", "llada-moe"}, .patterns = {kBailing}},
      {.names = {"seed-coder"}, .patterns = {kSeedCoder}},
      {.names = {"gpt-4o", "llama4", "kanana2", "minimax-m2", "talkie"}, .patterns = {kGpt4o}},
      {.names = {"tekken"}, .patterns = {kTekken}, .whole_words_first = true, .adds_bos = true},
      {.names = {"starcoder", "refact", "command-r", "smollm", "codeshell", "exaone", "minerva-7b",
                 "mellum2"},
       .patterns = {kDigit, kGpt2}},
      {.names = {"falcon"}, .patterns = {kFalconPunctuation, kGpt2, kThreeAsciiDigits}},
      {.names = {"deepseek-llm"},
       .patterns = {kLineEnd, kDeepseekLetters, kDeepseekPunctuation, kDeepseekTrailingSpace,
                    kDeepseekCjk, kNumber}},
      {.names = {"deepseek-coder"},
       .patterns = {kLineEnd, kDeepseekCoderWord, kDeepseekCoderPunctuation, kDeepseekCjk, kDigit}},
      {.names = {"deepseek-v3", "hunyuan-dense", "joyai-llm", "hy_v4"},
       .patterns = {kUpToThreeDigits, kDeepseekV3Cjk, kDeepseekV3}},
      {.names = {"bloom", "poro-chat", "gpt3-finnish"}, .patterns = {kBloom}},
      {.names = {"viking"}, .patterns = {kBloom, kDigit}},
      // Written by converters for an unknown tokenizer.
      {.names = {"default"}, .patterns = {kDefaultPunctuation, kGpt2, kNumber, kThreeAsciiDigits}},
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
