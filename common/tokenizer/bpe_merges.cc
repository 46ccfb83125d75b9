#include "common/tokenizer/bpe_merges.h"

#include <string>
#include <string_view>

#include "absl/strings/str_cat.h"

namespace tandem::tokenizer {
namespace {

uint64_t PairKey(TokenId left, TokenId right) {
  return static_cast<uint64_t>(static_cast<uint32_t>(left)) << 32 | static_cast<uint32_t>(right);
}

}  // namespace

absl::StatusOr<BpeMerges> BpeMerges::Create(const Vocabulary& vocabulary) {
  BpeMerges merges;
  TANDEM_RETURN_IF_ERROR(merges.Read(vocabulary));
  return merges;
}

absl::Status BpeMerges::Read(const Vocabulary& vocabulary) {
  const std::vector<std::string>& texts = vocabulary.data().merges;
  if (texts.size() >= BpeWord::kNone) {
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
    const TokenId left_token = vocabulary.Find(left), right_token = vocabulary.Find(right);
    const TokenId result = vocabulary.Find(joined);
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

void BpeMerges::FindMerge(BpeWord* word, uint32_t at) const {
  BpeWord::Symbol& left = word->symbols_[at];
  left.rank = BpeWord::kNone;
  if (left.next == BpeWord::kNone) return;
  const auto found = rank_of_.find(PairKey(left.token, word->symbols_[left.next].token));
  if (found == rank_of_.end()) return;
  left.rank = found->second;
  word->queue_.Push({left.rank, at});
}

void BpeMerges::Merge(BpeWord* word, std::vector<TokenId>* ids) const {
  constexpr uint32_t kNone = BpeWord::kNone;
  std::vector<BpeWord::Symbol>& symbols = word->symbols_;
  if (symbols.empty()) return;
  symbols.back().next = kNone;
  word->queue_.Start(symbols.size());
  for (uint32_t i = 0; i < symbols.size(); ++i) FindMerge(word, i);
  while (!word->queue_.empty()) {
    const auto [rank, at] = word->queue_.Pop();
    BpeWord::Symbol& left = symbols[at];
    if (left.rank != rank) continue;  // stale: a neighbour was merged
    BpeWord::Symbol& right = symbols[left.next];
    left.token = results_[rank];
    left.next = right.next;
    right.rank = kNone;
    if (left.next != kNone) symbols[left.next].previous = at;
    if (left.previous != kNone) FindMerge(word, left.previous);
    FindMerge(word, at);
  }
  for (uint32_t i = 0; i != kNone; i = symbols[i].next) ids->push_back(symbols[i].token);
}

}  // namespace tandem::tokenizer
