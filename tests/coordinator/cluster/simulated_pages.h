// SimulatedPages: the KV pages, block tables and recurrent states of one simulated rank in one
// epoch, and what computes on them: SimulatedModel. Single-threaded.
#ifndef TANDEM_TESTS_COORDINATOR_CLUSTER_SIMULATED_PAGES_H_
#define TANDEM_TESTS_COORDINATOR_CLUSTER_SIMULATED_PAGES_H_

#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/step/block_tables.h"
#include "common/step/descriptor.h"
#include "common/step/result.h"
#include "tests/coordinator/cluster/simulated_model.h"

namespace tandem::coordinator {

class SimulatedPages {
 public:
  // Unwritten values differ in every slot and group, and for every `fill`.
  SimulatedPages(SimulatedModel model, step::StepLimits limits, uint64_t fill);

  // The ids of the tokens of `step`, the next one of the epoch: those that it refers to were drawn
  // by the step before, and its drafts are guesses.
  std::vector<TokenId> TokensOf(const step::StepDescriptor& step) const;
  // Validates `received`, the next step of the epoch, and computes what `result` has for it.
  absl::Status Run(const step::StepDescriptor& received, step::StepResult& result);

 private:
  // Computes one sequence's tokens, of which `step` has their ids; appends the state of each.
  absl::Status ComputeSequence(const step::StepDescriptor& step, size_t sequence,
                               std::vector<uint64_t>& states);
  // Computes one token: reads its context through the block tables, writes its K and V, returns its
  // state.
  absl::StatusOr<uint64_t> ComputeToken(const step::StepDescriptor& step, size_t sequence,
                                        size_t token);
  // Notes whether the guesser has computed the token and all that it reads. An error if a row wants
  // a guess of it, and the guesser has not.
  absl::Status ComputeGuess(const step::StepDescriptor& step, size_t sequence, size_t token);

  const SimulatedModel model_;
  const step::StepLimits limits_;
  step::BlockTables tables_;
  std::vector<std::vector<uint64_t>> pages_;  // per group: (num_blocks * block_size)
  std::vector<uint64_t> recurrent_;           // by slot, then by snapshot
  size_t full_group_ = 0;         // the first without a window; the number of groups: none
  std::vector<bool> guessed_;     // where the guesser's K and V are complete, in that group's pages
  std::vector<TokenId> sampled_;  // by the last step
};

}  // namespace tandem::coordinator

#endif  // TANDEM_TESTS_COORDINATOR_CLUSTER_SIMULATED_PAGES_H_
