#include "coordinator/engine/step_builder.h"

#include <algorithm>
#include <utility>

namespace tandem::coordinator {
namespace {

step::StepKind KindOf(const Plan& plan) {
  const auto is_decode = [](const PlanEntry& entry) { return entry.phase == Phase::kDecode; };
  if (std::ranges::all_of(plan.entries, is_decode)) return step::StepKind::kDecode;
  return std::ranges::any_of(plan.entries, is_decode) ? step::StepKind::kMixed
                                                      : step::StepKind::kPrefill;
}

// Random numbers are keyed by (seed, index of the drawn token), so they do not depend on the batch
// or on preemption.
step::RowSampling SamplingOf(const Generation& generation) {
  const Sampling& sampling = generation.request.sampling;
  step::RowSampling row{.temperature = sampling.temperature,
                        .top_p = sampling.top_p,
                        .min_p = sampling.min_p,
                        .top_k = sampling.top_k,
                        .seed = sampling.seed,
                        .position = generation.num_tokens()};
  if (generation.num_generated() < sampling.min_tokens) row.banned = sampling.end_ids;
  return row;
}

void WantTop(uint32_t top_n, step::RowRequest& row) {
  if (top_n > 0) row.wants |= step::kWantTopLogprobs;
  row.top_n = top_n;
}

}  // namespace

const step::StepDescriptor& StepBuilder::Build(const Plan& plan, StepId step_id, Epoch epoch) {
  Clear();
  step_.step_id = step_id;
  step_.epoch = epoch;
  step_.kind = KindOf(plan);
  for (const PlanEntry& entry : plan.entries) AddEntry(entry);
  step_.num_scheduled_tokens = static_cast<uint32_t>(step_.tokens.size());
  step_.num_seqs_active = static_cast<uint32_t>(step_.sequences.size());
  return step_;
}

void StepBuilder::Clear() {
  step_.tokens.clear();
  step_.positions.clear();
  step_.query_offsets.assign(1, 0);
  step_.sequences.clear();
  step_.groups.resize(num_groups_);
  for (step::GroupTables& group : step_.groups) {
    group.table_offsets.assign(1, 0);
    group.blocks.clear();
    group.slot_mapping.clear();
  }
  step_.rows.clear();
  step_.sampling.clear();
}

void StepBuilder::AddEntry(const PlanEntry& entry) {
  const Generation& generation = GenerationOf(*entry.sequence);
  const uint32_t begin = generation.num_computed;
  const uint32_t end = begin + entry.num_tokens;
  step_.tokens.insert(step_.tokens.end(), generation.tokens.begin() + begin,
                      generation.tokens.begin() + end);
  for (uint32_t position = begin; position < end; ++position) {
    step_.positions.push_back(static_cast<int32_t>(position));
  }
  step_.query_offsets.push_back(static_cast<uint32_t>(step_.tokens.size()));
  step_.sequences.push_back(
      {.slot = generation.slot, .query_len = entry.num_tokens, .context_len = end});
  AddTables(generation, entry.num_tokens);
  AddScoredRows(generation, begin, entry.num_tokens);
  if (entry.samples) AddSampledRow(generation);
}

void StepBuilder::AddTables(const Sequence& sequence, uint32_t num_tokens) {
  const uint32_t begin = sequence.num_computed;
  for (uint32_t group = 0; group < num_groups_; ++group) {
    const BlockTable& table = sequence.blocks.tables()[group];
    step::GroupTables& out = step_.groups[group];
    const size_t first = out.blocks.size();
    out.blocks.resize(first + table.blocks.size());
    for (size_t i = 0; i < table.blocks.size(); ++i) out.blocks[first + i] = table.blocks[i].id();
    out.table_offsets.push_back(static_cast<uint32_t>(out.blocks.size()));
    for (uint32_t position = begin; position < begin + num_tokens; ++position) {
      const BlockId block = table.blocks[position / block_size_].id();
      out.slot_mapping.push_back(static_cast<int32_t>(static_cast<uint32_t>(block) * block_size_ +
                                                      position % block_size_));
    }
  }
}

void StepBuilder::AddScoredRows(const Generation& generation, uint32_t begin, uint32_t num_tokens) {
  const auto [first, end] = generation.PositionsToScore(begin, begin + num_tokens);
  const uint32_t first_token = static_cast<uint32_t>(step_.tokens.size()) - num_tokens;
  for (uint32_t position = first; position < end; ++position) {
    step::RowRequest row{.token = first_token + (position - begin),
                         .wants = step::kWantLogprobsOf,
                         .logprobs_of = {generation.tokens[position + 1]}};
    WantTop(*generation.request.sampling.prompt_logprobs, row);
    step_.rows.push_back(std::move(row));
  }
}

void StepBuilder::AddSampledRow(const Generation& generation) {
  step::RowRequest row{.token = static_cast<uint32_t>(step_.tokens.size() - 1),
                       .wants = step::kWantSample};
  if (generation.request.want_logits) row.wants |= step::kWantLogits;
  if (const auto& top_n = generation.request.sampling.logprobs; top_n.has_value()) {
    row.wants |= step::kWantSampleLogprob;
    WantTop(*top_n, row);
  }
  step_.rows.push_back(std::move(row));
  step_.sampling.push_back(SamplingOf(generation));
}

}  // namespace tandem::coordinator
