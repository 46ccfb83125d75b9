#include "common/tokenizer/sentencepiece.h"

#include <algorithm>
#include <cstdint>
#include <limits>
#include <string>

#include "common/base/check.h"
#include "common/tokenizer/utf8.h"

namespace tandem::tokenizer {
namespace {

constexpr uint32_t kNone = std::numeric_limits<uint32_t>::max();

// A piece of the text; the pieces form a list. A piece merged into its left neighbour has no bytes.
struct Symbol {
  uint32_t start;
  uint32_t bytes;
  uint32_t previous;
  uint32_t next;
};

// Two neighbours that together are a token. Out of date when their bytes no longer add up.
struct Candidate {
  float score;
  uint32_t left;
  uint32_t bytes;

  // The largest comes first: the best score, then the leftmost.
  friend bool operator<(const Candidate& a, const Candidate& b) {
    return a.score != b.score ? a.score < b.score : a.left > b.left;
  }
};

std::string MarkSpaces(std::string_view text, bool prefix) {
  std::string marked;
  marked.reserve(text.size() + text.size() / 2 + kSpaceMark.size());
  if (prefix) marked += kSpaceMark;
  for (char c : text) {
    if (c == ' ') {
      marked += kSpaceMark;
    } else {
      marked.push_back(c);
    }
  }
  return marked;
}

// One character as a number: its UTF-8 bytes. REQUIRES: `text` is valid and has a character at
// `at`.
uint64_t CharacterAt(std::string_view text, size_t at, size_t bytes) {
  uint64_t character = 0;
  for (size_t i = 0; i < bytes; ++i) {
    character = character << 8 | static_cast<uint8_t>(text[at + i]);
  }
  return character;
}

// Calls visit(offset, left, right) for every two characters that stand next to each other; `offset`
// is the right one's. REQUIRES: `text` is valid UTF-8.
template <typename Visit>
void ForNeighbours(std::string_view text, Visit visit) {
  uint64_t left = 0;
  for (size_t at = 0; at < text.size();) {
    const size_t bytes = Utf8Length(static_cast<uint8_t>(text[at]));
    const uint64_t right = CharacterAt(text, at, bytes);
    if (at > 0) visit(at, left, right);
    left = right;
    at += bytes;
  }
}

uint64_t PairKey(uint64_t left, uint64_t right) { return left << 32 | right; }

// Merges the characters of a text. Reused for many texts, so that a short one allocates nothing.
class Merger {
 public:
  explicit Merger(const Vocabulary& vocabulary) : vocabulary_(vocabulary) {}

  // REQUIRES: `text` is valid UTF-8 and not empty.
  void Run(std::string_view text) {
    Start(text);
    for (uint32_t i = 0; i < symbols_.size(); ++i) AddCandidate(i);
    while (!queue_.empty()) {
      std::pop_heap(queue_.begin(), queue_.end());
      const Candidate best = queue_.back();
      queue_.pop_back();
      Merge(best);
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
                          index == 0 ? kNone : index - 1, index + 1});
      at += bytes;
    }
    symbols_.back().next = kNone;
  }

  void AddCandidate(uint32_t left) {
    if (left == kNone || symbols_[left].next == kNone) return;
    const uint32_t bytes = symbols_[left].bytes + symbols_[symbols_[left].next].bytes;
    if (bytes > vocabulary_.max_token_bytes()) return;
    const TokenId token = vocabulary_.FindPlain(text_.substr(symbols_[left].start, bytes));
    if (token == kNoToken) return;
    queue_.push_back({vocabulary_.score(token), left, bytes});
    std::push_heap(queue_.begin(), queue_.end());
  }

  void Merge(const Candidate& best) {
    Symbol& left = symbols_[best.left];
    if (left.bytes == 0 || left.next == kNone) return;
    Symbol& right = symbols_[left.next];
    if (left.bytes + right.bytes != best.bytes) return;
    left.bytes = best.bytes;
    right.bytes = 0;
    left.next = right.next;
    if (left.next != kNone) symbols_[left.next].previous = best.left;
    AddCandidate(left.previous);
    AddCandidate(best.left);
  }

  const Vocabulary& vocabulary_;
  std::string_view text_;
  std::vector<Symbol> symbols_;
  std::vector<Candidate> queue_;  // a heap, the best first
};

}  // namespace

absl::StatusOr<std::unique_ptr<SentencePieceEncoder>> SentencePieceEncoder::Create(
    const Vocabulary& vocabulary, bool add_space_prefix) {
  if (vocabulary.data().scores.empty()) {
    return absl::InvalidArgumentError("vocabulary: a SentencePiece vocabulary needs scores");
  }
  // Create gives one to every vocabulary of this model: 0 where the file does not say.
  TANDEM_CHECK(vocabulary.special().unknown != kNoToken);
  return std::unique_ptr<SentencePieceEncoder>(
      new SentencePieceEncoder(vocabulary, add_space_prefix));
}

SentencePieceEncoder::SentencePieceEncoder(const Vocabulary& vocabulary, bool add_space_prefix)
    : vocabulary_(vocabulary), add_space_prefix_(add_space_prefix) {
  for (TokenId id = 0; id < vocabulary.size(); ++id) {
    const std::string_view text = vocabulary.text(id);
    if (ValidUtf8Prefix(text) != text.size()) continue;  // no text can hold it
    ForNeighbours(text, [&](size_t, uint64_t left, uint64_t right) {
      token_neighbours_.insert(PairKey(left, right));
    });
  }
}

absl::Status SentencePieceEncoder::Encode(std::string_view text, bool after_special,
                                          std::vector<TokenId>* ids) const {
  if (text.empty()) return absl::OkStatus();
  const std::string marked = MarkSpaces(text, add_space_prefix_ && after_special);
  const std::string_view all = marked;
  Merger merger(vocabulary_);
  auto encode_part = [&](size_t begin, size_t end) {
    merger.Run(all.substr(begin, end - begin));
    for (uint32_t symbol = 0; symbol != kNone; symbol = merger.Next(symbol)) {
      Emit(merger.Text(symbol), ids);
    }
  };
  // No merge crosses a place whose two characters are neighbours in no token, so the parts between
  // such places are merged one by one: short lists stay in the cache.
  size_t begin = 0;
  ForNeighbours(all, [&](size_t at, uint64_t left, uint64_t right) {
    if (token_neighbours_.contains(PairKey(left, right))) return;
    encode_part(begin, at);
    begin = at;
  });
  encode_part(begin, all.size());
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
    // Without all of its bytes the character is one unknown token, as SentencePiece has it.
    ids->resize(before);
    ids->push_back(vocabulary_.special().unknown);
    return;
  }
}

}  // namespace tandem::tokenizer
