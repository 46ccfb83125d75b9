// Aho-Corasick: finds many strings in a text in one pass, byte by byte (Aho and Corasick, 1975).
//
// Immutable after construction and thread-safe; a caller keeps its own State.
#ifndef TANDEM_COMMON_TOKENIZER_AHO_CORASICK_H_
#define TANDEM_COMMON_TOKENIZER_AHO_CORASICK_H_

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"

namespace tandem::tokenizer {

class AhoCorasick {
 public:
  using State = int32_t;
  static constexpr State kStart = 0;

  AhoCorasick() : AhoCorasick(std::vector<std::string>()) {}
  // Empty patterns never match; of equal ones, the first matches.
  explicit AhoCorasick(const std::vector<std::string>& patterns);

  // Amortised constant time over a text.
  State Next(State state, uint8_t byte) const;

  // The length of the longest suffix of the text so far that is a prefix of a pattern.
  int32_t Depth(State state) const { return nodes_[state].depth; }
  // The longest pattern that is a suffix of the text so far, or -1.
  int32_t LongestMatch(State state) const { return nodes_[state].longest_match; }

  // No pattern can ever match.
  bool empty() const { return nodes_.size() == 1; }

 private:
  struct Node {
    State parent = kStart;
    State fail = kStart;  // the node of the longest proper suffix
    int32_t depth = 0;
    int32_t longest_match = -1;
    uint8_t byte = 0;  // on the edge from the parent
  };

  static uint64_t Edge(State from, uint8_t byte) { return static_cast<uint64_t>(from) << 8 | byte; }
  // The child, or -1.
  State Child(State state, uint8_t byte) const;
  void Insert(const std::string& pattern, int32_t index);
  void Link();

  std::vector<Node> nodes_;
  std::array<State, 256> root_children_;  // -1: none
  absl::flat_hash_map<uint64_t, State> children_;
};

}  // namespace tandem::tokenizer

#endif  // TANDEM_COMMON_TOKENIZER_AHO_CORASICK_H_
