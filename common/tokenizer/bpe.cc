#include "common/tokenizer/bpe.h"

#include <limits>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "common/base/strings.h"
#include "common/gguf/quote.h"
#include "common/tokenizer/byte_alphabet.h"
#include "common/tokenizer/merge_queue.h"

namespace tandem::tokenizer {
namespace {

uint64_t PairKey(TokenId left, TokenId right) {
  return static_cast<uint64_t>(static_cast<uint32_t>(left)) << 32 | static_cast<uint32_t>(right);
}

constexpr uint32_t kNone = std::numeric_limits<uint32_t>::max();

// A piece of the word; the pieces form a list.
struct Symbol {
  TokenId token;
  uint32_t previous;
  uint32_t next;
  uint32_t rank;  // of its merge with the next one; kNone: there is none
};

}  // namespace

// Reused between the words of a text, to avoid allocations.
struct BpeEncoder::Scratch {
  std::vector<Symbol> symbols;
  MergeQueue queue;  // entries may be stale
};

absl::StatusOr<std::unique_ptr<BpeEncoder>> BpeEncoder::Create(const Vocabulary& vocabulary) {
  const std::string& pre = vocabulary.data().pre;
  const PretokenizerSpec* spec = FindPretokenizer(pre);
  if (spec == nullptr) {
    const std::string found =
        pre.empty() ? "the file names no pre-tokenizer (key tokenizer.ggml.pre)"
                    : absl::StrCat("pre-tokenizer ", gguf::Quoted(pre), " is not supported");
    return absl::InvalidArgumentError(
        absl::StrCat("vocabulary: ", found, "; known: ", SupportedPretokenizers()));
  }
  TANDEM_ASSIGN_OR_RETURN(Pretokenizer pretokenizer, Pretokenizer::Create(*spec));
  std::unique_ptr<BpeEncoder> encoder(
      new BpeEncoder(vocabulary, std::move(pretokenizer), spec->whole_words_first));
  TANDEM_RETURN_IF_ERROR(encoder->ReadMerges());
  return encoder;
}

BpeEncoder::BpeEncoder(const Vocabulary& vocabulary, Pretokenizer pretokenizer,
                       bool whole_words_first)
    : vocabulary_(vocabulary),
      pretokenizer_(std::move(pretokenizer)),
      whole_words_first_(whole_words_first) {
  for (int byte = 0; byte < 256; ++byte) {
    byte_tokens_[byte] = vocabulary_.Find(ByteToAlphabet(static_cast<uint8_t>(byte)));
  }
}

absl::Status BpeEncoder::ReadMerges() {
  const std::vector<std::string>& texts = vocabulary_.data().merges;
  if (texts.size() >= kNone) {
    return absl::InvalidArgumentError(
        absl::StrCat("vocabulary: ", texts.size(), " merges are more than 32 bits can count"));
  }
  results_.reserve(texts.size());
  rank_of_.reserve(texts.size());
  std::string joined;
  for (size_t rank = 0; rank < texts.size(); ++rank) {
    const std::string_view text = texts[rank];
    // From 1: the left part may itself be a space in vocabularies without the byte alphabet.
    const size_t space = text.find(' ', 1);
    if (space == std::string_view::npos || space + 1 == text.size()) {
      return absl::InvalidArgumentError(
          absl::StrCat("vocabulary: merge ", rank, " is not two tokens with a space between them"));
    }
    const std::string_view left = text.substr(0, space), right = text.substr(space + 1);
    joined.assign(left);
    joined.append(right);
    const TokenId left_token = vocabulary_.Find(left), right_token = vocabulary_.Find(right);
    const TokenId result = vocabulary_.Find(joined);
    if (left_token == kNoToken || right_token == kNoToken || result == kNoToken) {
      const char* part = left_token == kNoToken    ? "left part"
                         : right_token == kNoToken ? "right part"
                                                   : "result";
      return absl::InvalidArgumentError(
          absl::StrCat("vocabulary: the ", part, " of merge ", rank, " is not a token"));
    }
    // The first of equal merges is used.
    rank_of_.emplace(PairKey(left_token, right_token), static_cast<uint32_t>(rank));
    results_.push_back(result);
  }
  return absl::OkStatus();
}

absl::Status BpeEncoder::Encode(std::string_view text, bool /*after_special*/,
                                std::vector<TokenId>* ids) const {
  TANDEM_ASSIGN_OR_RETURN(std::vector<std::string_view> words, pretokenizer_.Split(text));
  Scratch scratch;
  for (std::string_view word : words) {
    if (whole_words_first_ && word.size() <= vocabulary_.max_token_bytes()) {
      const TokenId whole = vocabulary_.FindPlain(BytesToAlphabet(word));
      if (whole != kNoToken) {
        ids->push_back(whole);
        continue;
      }
    }
    TANDEM_RETURN_IF_ERROR(EncodeWord(word, &scratch, ids));
  }
  return absl::OkStatus();
}

uint32_t BpeEncoder::Rank(TokenId left, TokenId right) const {
  auto it = rank_of_.find(PairKey(left, right));
  return it == rank_of_.end() ? kNone : it->second;
}

absl::Status BpeEncoder::EncodeWord(std::string_view word, Scratch* scratch,
                                    std::vector<TokenId>* ids) const {
  std::vector<Symbol>& symbols = scratch->symbols;
  MergeQueue& queue = scratch->queue;
  symbols.clear();
  for (size_t i = 0; i < word.size(); ++i) {
    const uint8_t byte = static_cast<uint8_t>(word[i]);
    if (byte_tokens_[byte] == kNoToken) {
      return absl::InvalidArgumentError(
          absl::StrFormat("the vocabulary has no token for byte 0x%02x of the text", byte));
    }
    const uint32_t at = static_cast<uint32_t>(i);
    symbols.push_back({byte_tokens_[byte], at == 0 ? kNone : at - 1,
                       i + 1 == word.size() ? kNone : at + 1, kNone});
  }

  auto find_merge = [&](uint32_t at) {
    Symbol& left = symbols[at];
    left.rank = left.next == kNone ? kNone : Rank(left.token, symbols[left.next].token);
    if (left.rank != kNone) queue.Push({left.rank, at});
  };
  queue.Start(symbols.size());
  for (uint32_t i = 0; i < symbols.size(); ++i) find_merge(i);

  while (!queue.empty()) {
    const auto [rank, at] = queue.Pop();
    Symbol& left = symbols[at];
    if (left.rank != rank) continue;  // stale: a neighbour was merged
    Symbol& right = symbols[left.next];
    left.token = results_[rank];
    left.next = right.next;
    right.rank = kNone;
    if (left.next != kNone) symbols[left.next].previous = at;
    if (left.previous != kNone) find_merge(left.previous);
    find_merge(at);
  }
  for (uint32_t i = 0; i != kNone; i = symbols[i].next) ids->push_back(symbols[i].token);
  return absl::OkStatus();
}

}  // namespace tandem::tokenizer
