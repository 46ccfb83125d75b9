#include "coordinator/engine/step_builder.h"

#include <algorithm>
#include <utility>

namespace tandem::coordinator {
namespace {

step::StepKind KindOf(const Plan& plan) {
  const auto is_decode = [](const PlanEntry& entry) { return entry.phase == Phase::kDecode; };
  const auto is_one_token = [](const PlanEntry& entry) {
    return entry.phase == Phase::kDecode && entry.num_tokens == 1;
  };
  if (std::ranges::all_of(plan.entries, is_one_token)) return step::StepKind::kDecode;
  return std::ranges::any_of(plan.entries, is_decode) ? step::StepKind::kMixed
                                                      : step::StepKind::kPrefill;
}

// Whether the guesser has to compute the entry's tokens: those of a prompt always, since other
// sequences may have the same prefix.
bool NeedsGuesser(const PlanEntry& entry) {
  const Generation& generation = GenerationOf(*entry.sequence);
  return entry.begin < generation.prompt_len || generation.is_guessed_for();
}

// Random numbers are keyed by (seed, index of the drawn token), so they do not depend on the batch
// or on preemption.
step::RowSampling SamplingOf(Generation& generation, uint32_t position) {
  const Sampling& sampling = generation.request.sampling;
  const uint32_t num_pending = position - std::min(position, generation.num_tokens());
  return {.temperature = sampling.temperature,
          .top_p = sampling.top_p,
          .min_p = sampling.min_p,
          .top_k = sampling.top_k,
          .seed = sampling.seed,
          .position = position,
          .typical_p = sampling.typical_p,
          .xtc_probability = sampling.xtc_probability,
          .xtc_threshold = sampling.xtc_threshold,
          .adjustments = generation.adjuster.Adjust(generation.tokens, num_pending),
          .allowed = generation.Allowed()};
}

void WantTop(uint32_t top_n, step::RowRequest& row) {
  if (top_n > 0) row.wants |= step::kWantTopLogprobs;
  row.top_n = top_n;
}

// Rows of the entry's tokens that score prompt tokens.
void AddScoredRows(const Generation& generation, const PlanEntry& entry,
                   step::StepDescriptor& out) {
  const auto [first, end] = generation.PositionsToScore(entry.begin, entry.end());
  const uint32_t first_token = static_cast<uint32_t>(out.tokens.size()) - entry.num_tokens;
  for (uint32_t position = first; position < end; ++position) {
    step::RowRequest row{.token = first_token + (position - entry.begin),
                         .wants = step::kWantLogprobsOf,
                         .logprobs_of = {generation.TargetAt(position)}};
    WantTop(generation.request.sampling.prompt_logprobs.value_or(0), row);
    out.rows.push_back(std::move(row));
  }
}

void AddPool(const Generation& generation, const PlanEntry& entry, step::StepDescriptor& out) {
  const auto [first, end] = generation.PositionsToPool(entry.begin, entry.end());
  if (first >= end) return;
  const uint32_t first_token = static_cast<uint32_t>(out.tokens.size()) - entry.num_tokens;
  out.pools.push_back(
      {.begin = first_token + (first - entry.begin), .end = first_token + (end - entry.begin)});
}

// Its last tokens may be drafts, or one that the step before draws.
void AddTokens(const Generation& generation, const PlanEntry& entry, step::StepDescriptor& out) {
  const uint32_t known_end = entry.end() - entry.num_drafts - (entry.refers ? 1 : 0);
  for (uint32_t position = entry.begin; position < known_end; ++position) {
    out.tokens.push_back(generation.tokens[position]);
  }
  for (uint32_t position = entry.begin; position < entry.end(); ++position) {
    out.positions.push_back(static_cast<int32_t>(position));
  }
  out.tokens.insert(out.tokens.end(), generation.drafts.begin(),
                    generation.drafts.begin() + entry.num_drafts);
  if (!entry.refers) return;
  out.references.push_back(
      {.token = static_cast<uint32_t>(out.tokens.size()), .sample = generation.last_sample});
  out.tokens.push_back(0);
}

// The row of the entry's `index`th token from the last one on backwards.
void AddSampledRow(Generation& generation, const PlanEntry& entry, uint32_t index, bool may_draft,
                   step::StepDescriptor& out) {
  step::RowRequest row{.token = static_cast<uint32_t>(out.tokens.size() - 1) - index};
  if (generation.drafts_on_workers()) {
    // A draft follows it, or its guess is only judged.
    const bool is_guessed = entry.num_drafts > 0
                                ? index > 0
                                : may_draft && generation.speculator->IsWorthJudging(entry.end());
    if (is_guessed) row.wants |= step::kWantGuess;
  }
  if (generation.request.want_logits) row.wants |= step::kWantLogits;
  if (const auto& top_n = generation.request.sampling.logprobs; top_n.has_value()) {
    row.wants |= step::kWantSampleLogprob;
    WantTop(*top_n, row);
  }
  out.rows.push_back(std::move(row));
  generation.last_sample = static_cast<uint32_t>(out.sampling.size());
  out.sampling.push_back(SamplingOf(generation, entry.end() - index));
}

}  // namespace

void GroupByAdapter(Plan& plan) {
  std::ranges::stable_sort(plan.entries, {}, [](const PlanEntry& entry) {
    return std::pair(entry.phase != Phase::kDecode, GenerationOf(*entry.sequence).request.adapter);
  });
}

void StepBuilder::Build(const Plan& plan, step::StepDescriptor& out) const {
  Clear(out);
  out.kind = KindOf(plan);
  SkipGuesser(plan, out);
  for (const PlanEntry& entry : plan.entries) AddEntry(entry, plan.may_draft, out);
  out.num_scheduled_tokens = static_cast<uint32_t>(out.tokens.size());
  out.num_seqs_active = static_cast<uint32_t>(out.sequences.size());
}

void StepBuilder::SkipGuesser(const Plan& plan, step::StepDescriptor& out) const {
  out.skips_guesser = guesses_ && std::ranges::none_of(plan.entries, NeedsGuesser);
  if (!out.skips_guesser) return;
  for (const PlanEntry& entry : plan.entries) {
    uint32_t& unshared_from = entry.sequence->unshared_from;
    unshared_from = std::min(unshared_from, entry.begin);
  }
}

void StepBuilder::Clear(step::StepDescriptor& out) const {
  out.tokens.clear();
  out.positions.clear();
  out.query_offsets.assign(1, 0);
  out.sequences.clear();
  out.groups.resize(num_groups_);
  for (step::GroupDeltas& group : out.groups) {
    group.tables.clear();
    group.blocks.clear();
    group.slot_mapping.clear();
  }
  out.rows.clear();
  out.sampling.clear();
  out.references.clear();
  out.pools.clear();
}

void StepBuilder::AddEntry(const PlanEntry& entry, bool may_draft,
                           step::StepDescriptor& out) const {
  Generation& generation = GenerationOf(*entry.sequence);
  AddTokens(generation, entry, out);
  out.query_offsets.push_back(static_cast<uint32_t>(out.tokens.size()));
  out.sequences.push_back({.slot = generation.slot,
                           .query_len = entry.num_tokens,
                           .context_len = entry.end(),
                           .load_snapshot = entry.load_snapshot,
                           .save_snapshot = entry.save_snapshot,
                           .save_after = entry.save_after,
                           .num_drafts = generation.drafts_on_workers() ? entry.num_drafts : 0,
                           .adapter = generation.request.adapter});
  AddTables(entry, out);
  AddScoredRows(generation, entry, out);
  AddPool(generation, entry, out);
  for (uint32_t left = entry.num_sampled(); left > 0; --left) {
    AddSampledRow(generation, entry, left - 1, may_draft, out);
  }
}

void StepBuilder::AddTables(const PlanEntry& entry, step::StepDescriptor& out) const {
  const Sequence& sequence = *entry.sequence;
  for (uint32_t g = 0; g < num_groups_; ++g) {
    const BlockTable& table = sequence.blocks.tables()[g];
    step::GroupDeltas& group = out.groups[g];
    const step::TableDelta delta{.length_before = sequence.num_blocks_sent,
                                 .length_after = static_cast<uint32_t>(table.blocks.size()),
                                 .first_live = table.first_live};
    group.tables.push_back(delta);
    for (uint32_t i = delta.first_appended(); i < delta.length_after; ++i) {
      group.blocks.push_back(table.blocks[i].id());
    }
    for (uint32_t position = entry.begin; position < entry.end(); ++position) {
      const BlockId block = table.blocks[position / block_size_].id();
      group.slot_mapping.push_back(static_cast<int32_t>(static_cast<uint32_t>(block) * block_size_ +
                                                        position % block_size_));
    }
  }
}

}  // namespace tandem::coordinator
