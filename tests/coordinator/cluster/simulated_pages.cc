#include "tests/coordinator/cluster/simulated_pages.h"

#include <algorithm>
#include <span>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/status.h"

namespace tandem::coordinator {

SimulatedPages::SimulatedPages(SimulatedModel model, step::StepLimits limits, uint64_t fill)
    : model_(std::move(model)), limits_(std::move(limits)), tables_(limits_) {
  for (size_t group = 0; group < limits_.num_blocks.size(); ++group) {
    std::vector<uint64_t> page(size_t{limits_.num_blocks[group]} * limits_.block_size);
    for (size_t slot = 0; slot < page.size(); ++slot) {
      page[slot] = SimulatedMix(SimulatedMix(fill, group), slot);
    }
    pages_.push_back(std::move(page));
  }
  full_group_ = static_cast<size_t>(std::ranges::find(model_.window_tokens, 0u) -
                                    model_.window_tokens.begin());
  if (full_group_ < pages_.size()) guessed_.resize(pages_[full_group_].size());
  for (uint32_t i = 0; i < limits_.NumStates(); ++i) {
    recurrent_.push_back(SimulatedMix(SimulatedMix(fill, pages_.size()), i));
  }
}

std::vector<TokenId> SimulatedPages::TokensOf(const step::StepDescriptor& step) const {
  std::vector<TokenId> tokens = step.tokens;
  for (const step::TokenReference& reference : step.references) {
    tokens.at(reference.token) = sampled_.at(reference.sample);
  }
  for (size_t s = 0; s < step.sequences.size(); ++s) {
    const uint32_t end = step.query_offsets[s + 1];
    for (uint32_t token = end - step.sequences[s].num_drafts; token < end; ++token) {
      tokens[token] = model_.Guess(static_cast<uint64_t>(step.positions[token]));
    }
  }
  return tokens;
}

absl::Status SimulatedPages::Run(const step::StepDescriptor& received, step::StepResult& result) {
  TANDEM_RETURN_IF_ERROR(step::Validate(received, limits_, tables_));
  tables_.Apply(received);
  step::StepDescriptor step = received;
  step.tokens = TokensOf(received);
  std::vector<uint64_t> states;
  states.reserve(step.tokens.size());
  for (size_t s = 0; s < step.sequences.size(); ++s) {
    TANDEM_RETURN_IF_ERROR(ComputeSequence(step, s, states));
  }
  sampled_.clear();
  for (const step::RowRequest& row : step.rows) {
    step::RowResult& out = result.rows.emplace_back();
    if (row.wants & step::kWantSample) {
      sampled_.push_back(model_.Sample(states[row.token], step.sampling[sampled_.size()]));
      out.tokens = {sampled_.back()};
    }
    if (row.wants & step::kWantGuess) {
      result.guesses.push_back(model_.Guess(static_cast<uint64_t>(step.positions[row.token]) + 1));
    }
    if (row.wants & step::kWantLogits) out.logits = model_.Logits(states[row.token]);
    if (step::NumLogprobs(row) > 0) {
      const TokenId sampled = out.tokens.empty() ? 0 : out.tokens[0];
      out.logprobs = model_.Logprobs(states[row.token], row, sampled);
    }
  }
  for (const step::PoolRequest& pool : step.pools) {
    std::vector<double> sum(model_.hidden_size);
    for (uint32_t token = pool.begin; token < pool.end; ++token) {
      const std::vector<float> hidden = model_.Hidden(states[token]);
      for (size_t i = 0; i < sum.size(); ++i) sum[i] += hidden[i];
    }
    result.pooled.insert(result.pooled.end(), sum.begin(), sum.end());
  }
  return absl::OkStatus();
}

absl::Status SimulatedPages::ComputeSequence(const step::StepDescriptor& step, size_t sequence,
                                             std::vector<uint64_t>& states) {
  const step::SequenceEntry& entry = step.sequences[sequence];
  const auto snapshot = [&](kv::SnapshotId id) -> uint64_t& {
    return recurrent_[limits_.max_seqs + static_cast<size_t>(id)];
  };
  uint64_t& recurrent = recurrent_[entry.slot];
  if (entry.load_snapshot != kv::kNoSnapshot) recurrent = snapshot(entry.load_snapshot);
  if (entry.context_len == entry.query_len) recurrent = kSimulatedSeed;
  for (uint32_t i = 0; i < entry.query_len; ++i) {
    const size_t token = step.query_offsets[sequence] + i;
    TANDEM_ASSIGN_OR_RETURN(uint64_t state, ComputeToken(step, sequence, token));
    if (limits_.workers_guess) TANDEM_RETURN_IF_ERROR(ComputeGuess(step, sequence, token));
    recurrent = SimulatedMix(recurrent, static_cast<uint64_t>(step.tokens[token]));
    if (entry.save_after == i + 1) snapshot(entry.save_snapshot) = recurrent;
    states.push_back(model_.recurrent ? SimulatedMix(state, recurrent) : state);
  }
  return absl::OkStatus();
}

absl::StatusOr<uint64_t> SimulatedPages::ComputeToken(const step::StepDescriptor& step,
                                                      size_t sequence, size_t token) {
  const uint32_t position = static_cast<uint32_t>(step.positions[token]);
  const uint32_t block_size = limits_.block_size;
  uint64_t state = kSimulatedSeed;
  for (size_t group = 0; group < pages_.size(); ++group) {
    const std::span<const BlockId> table = tables_.Table(group, step.sequences[sequence].slot);
    uint64_t context = kSimulatedSeed;
    for (uint32_t p = model_.FirstRead(group, position); p < position; ++p) {
      const BlockId block = table[p / block_size];
      if (block == kNoBlock) {
        return absl::InvalidArgumentError(absl::StrCat("KV group ", group, ": position ", position,
                                                       " reads position ", p,
                                                       ", whose block was released"));
      }
      context = SimulatedMix(context, pages_[group][size_t{block_size} * block + p % block_size]);
    }
    const uint64_t kv = SimulatedKv(context, step.tokens[token], position, group);
    pages_[group][step.groups[group].slot_mapping[token]] = kv;
    state = SimulatedMix(state, kv);
  }
  return state;
}

absl::Status SimulatedPages::ComputeGuess(const step::StepDescriptor& step, size_t sequence,
                                          size_t token) {
  if (full_group_ == pages_.size()) return absl::OkStatus();
  const auto position = static_cast<uint32_t>(step.positions[token]);
  const std::span<const BlockId> table = tables_.Table(full_group_, step.sequences[sequence].slot);
  uint32_t num_complete = 0;
  while (num_complete < position &&
         guessed_[size_t{limits_.block_size} * table[num_complete / limits_.block_size] +
                  num_complete % limits_.block_size]) {
    ++num_complete;
  }
  const bool is_complete = num_complete == position && !step.skips_guesser;
  guessed_[step.groups[full_group_].slot_mapping[token]] = is_complete;
  const auto row = std::ranges::find(step.rows, token, &step::RowRequest::token);
  if (is_complete || row == step.rows.end() || (row->wants & step::kWantGuess) == 0) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(
      absl::StrCat("a guess after position ", position, " of slot ", step.sequences[sequence].slot,
                   " reads position ", num_complete, ", which the guesser has not computed"));
}

}  // namespace tandem::coordinator
