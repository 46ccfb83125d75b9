#include "tests/worker/step_bench/step_maker.h"

#include <algorithm>
#include <numeric>

#include "common/base/check.h"
#include "common/kv/blocks.h"

namespace tandem::worker {

StepMaker::StepMaker(uint32_t vocab, uint32_t block_size, uint32_t num_blocks)
    : vocab_(vocab), block_size_(block_size), free_(num_blocks) {
  std::iota(free_.begin(), free_.end(), 0);
  std::shuffle(free_.begin(), free_.end(), std::mt19937_64(1));
}

void StepMaker::Forget(uint32_t slot) {
  if (slot >= tables_.size()) return;
  free_.insert(free_.end(), tables_[slot].begin(), tables_[slot].end());
  tables_[slot].clear();
}

void StepMaker::ForgetAll() {
  for (uint32_t slot = 0; slot < tables_.size(); ++slot) Forget(slot);
}

step::StepDescriptor StepMaker::Make(const std::vector<BenchSequence>& sequences,
                                     float temperature) {
  step::StepDescriptor step;
  step.step_id = StepId{++last_step_};
  step.epoch = Epoch{1};
  step.kind = step::StepKind::kDecode;
  step.query_offsets = {0};
  step.groups.resize(1);
  for (const BenchSequence& sequence : sequences) Append(sequence, temperature, step);
  step.num_scheduled_tokens = static_cast<uint32_t>(step.tokens.size());
  step.num_seqs_active = static_cast<uint32_t>(step.sequences.size());
  return step;
}

void StepMaker::Append(const BenchSequence& sequence, float temperature,
                       step::StepDescriptor& step) {
  const uint32_t context = sequence.context_len;
  if (sequence.query_len > 1) step.kind = step::StepKind::kMixed;
  if (tables_.size() <= sequence.slot) tables_.resize(sequence.slot + 1);
  std::vector<BlockId>& table = tables_[sequence.slot];
  const auto length_before = static_cast<uint32_t>(table.size());
  step::GroupDeltas& group = step.groups[0];
  while (table.size() < kv::BlocksFor(context, block_size_)) {
    TANDEM_CHECK(!free_.empty()) << "no KV block is free";
    group.blocks.push_back(free_.back());
    table.push_back(free_.back());
    free_.pop_back();
  }
  group.tables.push_back({.length_before = length_before,
                          .length_after = static_cast<uint32_t>(table.size()),
                          .first_live = 0});
  for (uint32_t at = context - sequence.query_len; at < context; ++at) {
    step.tokens.push_back(static_cast<TokenId>(random_() % vocab_));
    step.positions.push_back(static_cast<int32_t>(at));
    group.slot_mapping.push_back(table[at / block_size_] * static_cast<int32_t>(block_size_) +
                                 static_cast<int32_t>(at % block_size_));
  }
  step.sequences.push_back(
      {.slot = sequence.slot, .query_len = sequence.query_len, .context_len = context});
  step.query_offsets.push_back(static_cast<uint32_t>(step.tokens.size()));
  step.rows.push_back({.token = step.query_offsets.back() - 1});
  step.sampling.push_back({.temperature = temperature, .seed = sequence.slot, .position = context});
}

}  // namespace tandem::worker
