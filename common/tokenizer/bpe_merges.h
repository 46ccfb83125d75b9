// The merges of a BPE vocabulary. Source: Sennrich et al. 2016 (arXiv:1508.07909).
#ifndef TANDEM_COMMON_TOKENIZER_BPE_MERGES_H_
#define TANDEM_COMMON_TOKENIZER_BPE_MERGES_H_

#include <cstdint>
#include <limits>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "common/base/status.h"
#include "common/tokenizer/merge_queue.h"
#include "common/tokenizer/vocabulary.h"

namespace tandem::tokenizer {

// The symbols of one word, before merging. Not thread-safe; reused between the words of a text, to
// avoid allocations.
class BpeWord {
 public:
  void Clear() { symbols_.clear(); }
  void Add(TokenId token) {
    const uint32_t at = static_cast<uint32_t>(symbols_.size());
    symbols_.push_back({token, at - 1, at + 1, kNone});
  }

 private:
  friend class BpeMerges;
  static constexpr uint32_t kNone = std::numeric_limits<uint32_t>::max();

  // A piece of the word; the pieces form a list. The first one's `previous` is kNone.
  struct Symbol {
    TokenId token;
    uint32_t previous;
    uint32_t next;
    uint32_t rank;  // of its merge with the next one; kNone: there is none
  };
  std::vector<Symbol> symbols_;
  MergeQueue queue_;  // entries may be stale
};

// Immutable and thread-safe.
class BpeMerges {
 public:
  // INVALID_ARGUMENT when a merge is malformed, or refers to or produces a string that is not a
  // token.
  static absl::StatusOr<BpeMerges> Create(const Vocabulary& vocabulary);

  // Merges neighbours, those of the lowest rank first, of equal ranks the leftmost, until no two
  // merge, and appends the tokens that are left to `ids`. O(n log n).
  void Merge(BpeWord* word, std::vector<TokenId>* ids) const;

 private:
  BpeMerges() = default;
  absl::Status Read(const Vocabulary& vocabulary);
  void FindMerge(BpeWord* word, uint32_t at) const;

  std::vector<TokenId> results_;                     // of each merge, by rank
  absl::flat_hash_map<uint64_t, uint32_t> rank_of_;  // (left, right) -> rank
};

}  // namespace tandem::tokenizer

#endif  // TANDEM_COMMON_TOKENIZER_BPE_MERGES_H_
