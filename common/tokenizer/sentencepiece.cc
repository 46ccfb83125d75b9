#include "common/tokenizer/sentencepiece.h"

#include <algorithm>
#include <cstdint>
#include <functional>
#include <limits>
#include <string>

#include "common/base/check.h"
#include "common/base/utf8.h"
#include "common/tokenizer/merge_queue.h"
#include "common/tokenizer/space_mark.h"

namespace tandem::tokenizer {
namespace {

constexpr uint32_t kNone = std::numeric_limits<uint32_t>::max();

// A piece of the text; the pieces form a list.
struct Symbol {
  uint32_t start;
  uint32_t bytes;
  uint32_t previous;
  uint32_t next;
  uint32_t rank;  // of the token that it makes with the next one; kNone: there is none
};

// Merges the characters of a text. Reused for many texts, so that a short one allocates nothing.
class Merger {
 public:
  Merger(const Vocabulary& vocabulary, const std::vector<uint32_t>& ranks)
      : vocabulary_(vocabulary), ranks_(ranks) {}

  // REQUIRES: `text` is valid UTF-8 and not empty.
  void Run(std::string_view text) {
    Start(text);
    for (uint32_t i = 0; i < symbols_.size(); ++i) FindMerge(i);
    while (!queue_.empty()) {
      const auto [rank, at] = queue_.Pop();
      // Otherwise stale: a neighbour was merged.
      if (symbols_[at].rank == rank) Merge(at);
    }
  }

  // The pieces are those of the symbols from 0 on, by Next, until kNone.
  std::string_view Text(uint32_t symbol) const {
    return text_.substr(symbols_[symbol].start, symbols_[symbol].bytes);
  }
  uint32_t Next(uint32_t symbol) const { return symbols_[symbol].next; }

 private:
  void Start(std::string_view text) {
    text_ = text;
    symbols_.clear();
    for (size_t at = 0; at < text.size();) {
      const size_t bytes = Utf8Length(static_cast<uint8_t>(text[at]));
      const uint32_t index = static_cast<uint32_t>(symbols_.size());
      symbols_.push_back({static_cast<uint32_t>(at), static_cast<uint32_t>(bytes),
                          index == 0 ? kNone : index - 1, index + 1, kNone});
      at += bytes;
    }
    symbols_.back().next = kNone;
    queue_.Start(symbols_.size());
  }

  void FindMerge(uint32_t at) {
    Symbol& left = symbols_[at];
    left.rank = kNone;
    if (left.next == kNone) return;
    const uint32_t bytes = left.bytes + symbols_[left.next].bytes;
    if (bytes > vocabulary_.max_token_bytes()) return;
    const TokenId token = vocabulary_.FindPlain(text_.substr(left.start, bytes));
    if (token == kNoToken) return;
    left.rank = ranks_[token];
    queue_.Push({left.rank, at});
  }

  void Merge(uint32_t at) {
    Symbol& left = symbols_[at];
    Symbol& right = symbols_[left.next];
    left.bytes += right.bytes;
    left.next = right.next;
    right.rank = kNone;
    if (left.next != kNone) symbols_[left.next].previous = at;
    if (left.previous != kNone) FindMerge(left.previous);
    FindMerge(at);
  }

  const Vocabulary& vocabulary_;
  const std::vector<uint32_t>& ranks_;
  std::string_view text_;
  std::vector<Symbol> symbols_;
  MergeQueue queue_;  // entries may be stale
};

// Each token's rank by score, the best first; equal scores share a rank.
std::vector<uint32_t> RankByScore(const Vocabulary& vocabulary) {
  std::vector<float> scores = vocabulary.data().scores;
  std::sort(scores.begin(), scores.end(), std::greater<>());
  scores.erase(std::unique(scores.begin(), scores.end()), scores.end());
  std::vector<uint32_t> ranks;
  ranks.reserve(vocabulary.data().scores.size());
  for (const float score : vocabulary.data().scores) {
    const auto at = std::lower_bound(scores.begin(), scores.end(), score, std::greater<>());
    ranks.push_back(static_cast<uint32_t>(at - scores.begin()));
  }
  return ranks;
}

}  // namespace

absl::StatusOr<std::unique_ptr<SentencePieceEncoder>> SentencePieceEncoder::Create(
    const Vocabulary& vocabulary, bool add_space_prefix) {
  if (vocabulary.data().scores.empty()) {
    return absl::InvalidArgumentError("vocabulary: a SentencePiece vocabulary needs scores");
  }
  // Create gives one to every vocabulary of this model: 0 if the file has none.
  TANDEM_CHECK(vocabulary.special().unknown != kNoToken);
  return std::unique_ptr<SentencePieceEncoder>(
      new SentencePieceEncoder(vocabulary, add_space_prefix));
}

SentencePieceEncoder::SentencePieceEncoder(const Vocabulary& vocabulary, bool add_space_prefix)
    : vocabulary_(vocabulary),
      add_space_prefix_(add_space_prefix),
      ranks_(RankByScore(vocabulary)),
      pairs_(vocabulary) {}

absl::Status SentencePieceEncoder::Encode(std::string_view text, bool after_special,
                                          std::vector<TokenId>* ids) const {
  if (text.empty()) return absl::OkStatus();
  const std::string marked = MarkSpaces(text, add_space_prefix_ && after_special);
  Merger merger(vocabulary_, ranks_);
  pairs_.ForEachPart(marked, [&](std::string_view part) {
    merger.Run(part);
    for (uint32_t symbol = 0; symbol != kNone; symbol = merger.Next(symbol)) {
      Emit(merger.Text(symbol), ids);
    }
  });
  return absl::OkStatus();
}

void SentencePieceEncoder::Emit(std::string_view piece, std::vector<TokenId>* ids) const {
  const TokenId token = vocabulary_.FindPlain(piece);
  if (token != kNoToken) {
    ids->push_back(token);
    return;
  }
  const size_t before = ids->size();
  for (char c : piece) {
    const TokenId byte = vocabulary_.ByteToken(static_cast<uint8_t>(c));
    if (byte != kNoToken) {
      ids->push_back(byte);
      continue;
    }
    // If some of its bytes have no token, the character is one unknown token, as in SentencePiece.
    ids->resize(before);
    ids->push_back(vocabulary_.special().unknown);
    return;
  }
}

}  // namespace tandem::tokenizer
