// Sequence: the scheduler's state of one request: its tokens and how many are computed.
#ifndef TANDEM_COORDINATOR_SCHEDULER_SEQUENCE_H_
#define TANDEM_COORDINATOR_SCHEDULER_SEQUENCE_H_

#include <algorithm>
#include <cstdint>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "common/base/ids.h"
#include "coordinator/kvcache/block_manager.h"
#include "coordinator/kvcache/sequence_blocks.h"
#include "coordinator/scheduler/snapshot_points.h"

namespace tandem::coordinator {

enum class SequenceState { kNew, kWaiting, kRunning, kFinished };

// The next token of a running sequence: its only missing one but for those computed again (decode),
// or one of several (prefill).
enum class Phase { kPrefill, kDecode };

// The owner appends to `tokens`, sets what is fixed before Enqueue, and lowers `unshared_from`;
// only the scheduler changes the rest. Counts of leading tokens, of which the last num_pending are
// not known yet: num_computed <= num_scheduled <= num_tokens() + num_pending. While drafts are
// computed they count as scheduled, and as many tokens are pending as are drawn if all are right.
struct Sequence {
  Sequence(uint64_t request_handle, std::vector<TokenId> prompt)
      : handle(request_handle),
        prompt_len(static_cast<uint32_t>(prompt.size())),
        tokens(std::move(prompt)) {}

  const uint64_t handle;  // of the request; strictly rising in the order of Enqueue
  const uint32_t prompt_len;
  std::vector<TokenId> tokens;  // prompt and generated; kept when preempted

  // The rows of its prompt's tokens from this position on are requested: the prefix cache gives
  // nothing after them, and the size of a step's result limits how many there are of them.
  uint32_t scored_from = UINT32_MAX;
  // How many of the `count` tokens from `begin` on those are.
  uint32_t NumScored(uint32_t begin, uint32_t count) const {
    const uint32_t first = std::max(begin, scored_from);
    const uint32_t end = std::min(begin + count, prompt_len);
    return end - std::min(first, end);
  }
  // The sum of the final states of its tokens [pooled_from, pooled_end) is wanted. The prefix cache
  // gives none of them, and the size of a step's result limits how many sequences' a step has.
  uint32_t pooled_from = UINT32_MAX;
  uint32_t pooled_end = 0;
  // Whether some of the `count` tokens from `begin` on are among those.
  bool Pools(uint32_t begin, uint32_t count) const {
    return std::max(begin, pooled_from) < std::min(begin + count, pooled_end);
  }
  // The tokens whose prefix may come from the cache; the last one is computed in any case.
  uint32_t FirstWanted() const { return std::min(scored_from, pooled_from); }
  std::span<const TokenId> Shareable() const {
    return std::span(tokens).first(std::min<size_t>(tokens.size(), size_t{FirstWanted()} + 1));
  }
  // K and V in its blocks lack, from this position on, what other sequences need of a prefix: the
  // guesser's. So the prefix cache gets none of them. Its owner sets it before Advance.
  uint32_t unshared_from = UINT32_MAX;
  std::span<const TokenId> Published() const {
    return std::span(tokens).first(std::min<size_t>(tokens.size(), unshared_from));
  }
  // Nothing is drawn: its owner ends it when its prompt is computed.
  bool generates = true;

  // A higher number is preempted first, whenever it came.
  int32_t priority = 0;
  // When it came, on a clock of the owner's, plus what its priority is worth: the lowest is served
  // first.
  int64_t virtual_arrival_us = 0;

  // It ends with this many tokens at the latest, prompt and generated.
  uint32_t most_tokens = UINT32_MAX;
  // What its next row needs depends on all tokens before it: no step may refer to a pending one.
  bool needs_known_tokens = false;
  // Guesses of the tokens after `tokens`, for a step that computes the last of those; its owner
  // sets them with `tokens`. None are computed any more after a loss of workers in a step of its.
  std::vector<TokenId> drafts{};
  bool may_draft = true;
  bool is_drafting =
      false;  // a step with drafts is in flight: how many tokens it gives is not known
  // Of a recurrent state that was taken back to before wrong drafts: the tokens before this one are
  // computed again, though they were drawn already; and the next step loads it.
  uint32_t again_end = 0;
  bool restores_state = false;

  // Of PromisedPrefixes: the hash under which it promises its prefix, while it runs; whose prefix
  // it waits for, while it waits; how many tokens of it, also after they came, until it runs.
  std::optional<uint64_t> promised{};
  Sequence* leader = nullptr;
  uint32_t num_awaited = 0;

  SequenceState state = SequenceState::kNew;
  uint32_t num_computed = 0;   // tokens whose K and V are in `blocks`
  uint32_t num_scheduled = 0;  // tokens that submitted steps compute, settled or not
  uint32_t num_in_flight = 0;  // submitted steps that name this sequence and have not settled
  uint32_t num_pending = 0;    // tokens that those draw
  uint64_t last_drawn_by = 0;  // number of the step that draws the last of them
  uint32_t num_cached = 0;     // prompt tokens found in the prefix cache when it first ran
  uint32_t num_drafted = 0;    // drafts that were computed, and how many of them were accepted
  uint32_t num_accepted = 0;
  bool was_admitted = false;
  uint32_t num_preempted = 0;        // times
  uint32_t num_skips = 0;            // later sequences admitted while it did not fit
  uint32_t slot = 0;                 // while running; stable, below max_num_seqs
  PrefixHashes prefix_hashes;        // of `tokens`; its salt is set before Enqueue
  uint64_t refused_at = UINT64_MAX;  // BlockManager::num_returns() when it last did not fit, and
  std::optional<uint64_t> missing_block;  // PrefixMatch::missing
  SequenceBlocks blocks;
  SnapshotPoints snapshot_points;  // while running
  uint32_t num_blocks_sent = 0;    // per KV group: table entries sent with submitted steps
  // Losses of workers in steps that named this sequence, since it last made progress: until its
  // first `lost_end` tokens, those of the lost steps, are computed.
  uint32_t num_strikes = 0;
  uint32_t lost_end = 0;

  uint32_t num_tokens() const { return static_cast<uint32_t>(tokens.size()); }
  uint32_t num_generated() const { return num_tokens() - prompt_len; }
  uint32_t num_missing() const { return num_tokens() + num_pending - num_scheduled; }
  // The missing tokens that are computed again.
  uint32_t num_again() const { return again_end - std::min(again_end, num_scheduled); }
  Phase phase() const {
    return num_scheduled > 0 && num_missing() == num_again() + 1 ? Phase::kDecode : Phase::kPrefill;
  }
};

}  // namespace tandem::coordinator

#endif  // TANDEM_COORDINATOR_SCHEDULER_SEQUENCE_H_
