// TokenCounts: how often each id occurs among a sequence's last tokens, for its penalties.
#ifndef TANDEM_COORDINATOR_ENGINE_TOKEN_COUNTS_H_
#define TANDEM_COORDINATOR_ENGINE_TOKEN_COUNTS_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "common/base/ids.h"

namespace tandem::coordinator {

// Counts follow from the tokens alone. One thread.
class TokenCounts {
 public:
  struct Count {
    TokenId id = 0;
    uint32_t total = 0;
    uint32_t generated = 0;  // of `total`, not in the prompt
    bool operator==(const Count&) const = default;
  };

  // Counts the last `window` tokens, those of the prompt if `with_prompt`.
  TokenCounts(uint32_t window, uint32_t prompt_len, bool with_prompt)
      : window_(window), prompt_len_(prompt_len), with_prompt_(with_prompt) {}

  // Counts tokens that are new since the last call: a search and a move in the list for each.
  // REQUIRES: `tokens` begins with those of the last call.
  void Advance(std::span<const TokenId> tokens);
  // Ascending by id, counts above 0.
  const std::vector<Count>& counts() const { return counts_; }

 private:
  void Rebuild(std::span<const TokenId> tokens);
  void Add(TokenId token, size_t position);
  void Remove(TokenId token, size_t position);
  std::vector<Count>::iterator Find(TokenId token);
  bool IsCounted(size_t position) const { return with_prompt_ || position >= prompt_len_; }

  const size_t window_;
  const size_t prompt_len_;
  const bool with_prompt_;
  size_t num_seen_ = 0;
  std::vector<Count> counts_;
};

}  // namespace tandem::coordinator

#endif  // TANDEM_COORDINATOR_ENGINE_TOKEN_COUNTS_H_
