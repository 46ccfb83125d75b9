// Arithmetic of KV blocks: the tokens of a sequence are cut into blocks of `block_size`.
#ifndef TANDEM_COMMON_KV_BLOCKS_H_
#define TANDEM_COMMON_KV_BLOCKS_H_

#include <algorithm>
#include <concepts>
#include <cstdint>

namespace tandem::kv {

// What a token attends to: itself and the tokens - 1 tokens before it; or, with chunks of `tokens`,
// those of its chunk up to itself. 0: all.
struct Window {
  uint32_t tokens = 0;
  bool chunked = false;

  constexpr Window() = default;
  // NOLINTNEXTLINE(google-explicit-constructor): a number of tokens is a window
  constexpr Window(uint32_t num_tokens, bool in_chunks = false)
      : tokens(num_tokens), chunked(in_chunks) {}
};

// Blocks that hold `num_tokens` from a block's beginning.
template <std::unsigned_integral T>
constexpr T BlocksFor(T num_tokens, uint32_t block_size) {
  return num_tokens / block_size + (num_tokens % block_size != 0);
}

// The first position visible to the token at `position`.
template <std::unsigned_integral T>
constexpr T WindowStart(Window window, T position) {
  if (window.tokens == 0) return 0;
  if (window.chunked) return position / window.tokens * window.tokens;
  return position < window.tokens ? 0 : position - window.tokens + 1;
}

// The first block read by the token at `position`.
constexpr uint32_t FirstLiveBlock(Window window, uint32_t position, uint32_t block_size) {
  return WindowStart(window, position) / block_size;
}

// The most blocks that one sequence with a window holds at a time, regardless of its length, if a
// step adds at most `step_tokens`: a step reads and writes one run of tokens, which may begin at a
// block's last token. A chunk is a window that is sometimes shorter.
constexpr uint64_t BlocksOfRun(uint32_t window, uint32_t step_tokens, uint32_t block_size) {
  const uint64_t run = uint64_t{window} - 1 + step_tokens;
  return (run + block_size - 2) / block_size + 1;
}

// The most blocks that one sequence of `num_tokens` holds at a time.
constexpr uint32_t MostBlocksOfSequence(uint32_t window, uint32_t num_tokens, uint32_t step_tokens,
                                        uint32_t block_size) {
  const uint32_t all = BlocksFor(num_tokens, block_size);
  if (window == 0) return all;
  const uint64_t run = BlocksOfRun(window, step_tokens, block_size);
  return static_cast<uint32_t>(std::min<uint64_t>(all, run));
}

// The most tokens of one sequence that `num_blocks` can take: the inverse of MostBlocksOfSequence.
// UINT64_MAX if, with a window, every length is possible.
constexpr uint64_t MostTokensOfSequence(uint32_t window, uint32_t num_blocks, uint32_t step_tokens,
                                        uint32_t block_size) {
  const bool any = window != 0 && BlocksOfRun(window, step_tokens, block_size) <= num_blocks;
  return any ? UINT64_MAX : uint64_t{num_blocks} * block_size;
}

}  // namespace tandem::kv

#endif  // TANDEM_COMMON_KV_BLOCKS_H_
