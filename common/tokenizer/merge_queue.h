// Priority queue of the pending merges in one word: the best rank first, of equal ranks the
// leftmost.
//
// Short words use a binary heap. For a long word (a megabyte of one letter) a heap would miss the
// cache at every level, so merges are bucketed by rank: positions are mostly added in ascending
// order and removed by reading an array. Either way n merges cost O(n log n) at worst.
#ifndef TANDEM_COMMON_TOKENIZER_MERGE_QUEUE_H_
#define TANDEM_COMMON_TOKENIZER_MERGE_QUEUE_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/container/flat_hash_map.h"

namespace tandem::tokenizer {

// Not thread-safe. Reused for many words, so that a short one allocates nothing.
class MergeQueue {
 public:
  // Minimum number of symbols of a long word.
  static constexpr size_t kLongWord = 4096;

  struct Item {
    uint32_t rank;
    uint32_t position;
  };

  // Empties the queue for a word of `symbols` symbols.
  void Start(size_t symbols);
  void Push(Item item);
  bool empty() const { return long_ ? ranks_.empty() : heap_.empty(); }
  // REQUIRES: not empty.
  Item Pop();

 private:
  // The pending positions of one rank.
  class Bucket {
   public:
    void Add(uint32_t position);
    // The smallest. REQUIRES: not empty.
    uint32_t Take();
    bool empty() const { return next_ == run_.size() && late_.empty(); }
    void Clear();

   private:
    std::vector<uint32_t> run_;   // from next_ on; ascending once begun_
    std::vector<uint32_t> late_;  // a min-heap: added out of order
    size_t next_ = 0;
    bool ascending_ = true;
    bool begun_ = false;  // something was taken since the bucket was empty
  };

  uint32_t SlotOf(uint32_t rank);

  bool long_ = false;
  std::vector<uint64_t> heap_;  // a min-heap of rank << 32 | position
  std::vector<Bucket> buckets_;
  absl::flat_hash_map<uint32_t, uint32_t> slot_of_rank_;
  std::vector<uint64_t> ranks_;  // a min-heap of rank << 32 | slot: the buckets that are not empty
};

}  // namespace tandem::tokenizer

#endif  // TANDEM_COMMON_TOKENIZER_MERGE_QUEUE_H_
