// PromisedPrefixes: prefixes that running sequences are about to compute, so that prompts which
// begin with them, and came just after, wait for them instead of computing them too.
//
// A leader promises the blocks of its known tokens that an equal prompt would not find in the cache
// yet. A prompt waits only if it shares two of them or more, so they are looked up by the hash of
// the second, another one whenever blocks are published. Several leaders may have one hash: one
// that is served later than a prompt, or shares less of it, does not hide another. A follower waits
// for one leader to compute as many tokens as both have in common, or to break its promise: by its
// end, by being preempted, or with the loss of its workers. Then its followers are waiting
// sequences again, the first of which may be the next leader.
//
// Holds no blocks and no tokens. O(log leaders) per step and leader, and O(log followers) for each
// follower that comes or is ready; one that leaves costs O(followers of its leader).
// Single-threaded (the engine thread); sequences are borrowed.
#ifndef TANDEM_COORDINATOR_SCHEDULER_PROMISED_PREFIXES_H_
#define TANDEM_COORDINATOR_SCHEDULER_PROMISED_PREFIXES_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/container/btree_map.h"
#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "coordinator/scheduler/sequence.h"

namespace tandem::coordinator {

class PromisedPrefixes {
 public:
  // `leader` promises what follows its published tokens, of which the second block has `hash`.
  // Replaces what it promised before.
  void Promise(Sequence& leader, uint64_t hash);
  // It promises nothing to those who come now.
  void Retract(Sequence& leader);
  // Those who promise a prefix whose second block has that hash, in the order of their promises.
  std::vector<Sequence*> LeadersOf(uint64_t hash) const;

  // `follower` waits until `leader` has computed its first `num_tokens`.
  void Follow(Sequence& follower, Sequence& leader, uint32_t num_tokens);
  // It waits no more for its leader.
  void Leave(Sequence& follower);
  // The followers of `leader` that wait for no more than `num_computed` tokens, in no useful order;
  // they are its followers no more.
  std::vector<Sequence*> TakeReady(Sequence& leader, uint32_t num_computed);

  size_t num_leaders() const { return leaders_.size(); }
  size_t num_followers() const { return num_followers_; }
  // INTERNAL naming the inconsistency.
  absl::Status CheckIntegrity() const;

 private:
  using Followers = absl::btree_multimap<uint32_t, Sequence*>;  // by the tokens that they wait for

  absl::btree_multimap<uint64_t, Sequence*> leaders_;            // by hash
  absl::flat_hash_map<const Sequence*, Followers> followers_{};  // by leader; none is empty
  size_t num_followers_ = 0;
};

}  // namespace tandem::coordinator

#endif  // TANDEM_COORDINATOR_SCHEDULER_PROMISED_PREFIXES_H_
