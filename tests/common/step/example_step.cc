#include "tests/common/step/example_step.h"

#include <limits>

namespace tandem::step {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();

}  // namespace

StepLimits ExampleLimits() {
  return {.max_tokens = 8,
          .max_seqs = 4,
          .max_model_len = 32,
          .vocab_size = 100,
          .hidden_size = 2,
          .block_size = 4,
          .num_blocks = {16, 10},
          .windows = {0, 5},
          .num_snapshots = 3,
          .num_adapters = 1,
          .workers_guess = true,
          .max_result_bytes = 8192};
}

StepDescriptor ExampleStep() {
  StepDescriptor step;
  step.step_id = StepId{5};
  step.epoch = Epoch{3};
  step.num_scheduled_tokens = 4;
  step.num_seqs_active = 2;
  step.tokens = {0, 1, 2, 3};
  step.positions = {20, 0, 1, 2};
  step.query_offsets = {0, 1, 4};
  step.sequences = {
      {.slot = 2, .query_len = 1, .context_len = 21, .load_snapshot = 2},
      {.slot = 0, .query_len = 3, .context_len = 3, .save_snapshot = 1, .save_after = 2}};
  step.groups = {
      {.tables = {{.length_before = 5, .length_after = 6, .first_live = 0},
                  {.length_before = 0, .length_after = 1, .first_live = 0}},
       .blocks = {8, 0},
       .slot_mapping = {8 * 4 + 0, 0, 1, 2}},
      // Token 20 attends to 16..20: blocks 0 to 3 are before the window.
      {.tables = {{.length_before = 5, .length_after = 6, .first_live = 4},
                  {.length_before = 0, .length_after = 2, .first_live = 0}},
       .blocks = {4, 7, 1},
       .slot_mapping = {4 * 4 + 0, 28, 29, 30}},
  };
  step.rows = {{.token = 0, .wants = kWantSample | kWantLogits}, {.token = 3}};
  step.sampling = {
      {.temperature = 0.7f,
       .top_p = 0.9f,
       .seed = 11,
       .position = 21,
       .typical_p = 0.8f,
       .xtc_probability = 0.5f,
       .xtc_threshold = 0.2f,
       .adjustments = {{.id = 0, .bias = -kInfinity},
                       {.id = 99, .bias = 2, .repetition = 1.5f, .penalty = 0.25f}}},
      {.temperature = 0.0f, .top_k = 40, .position = 3, .allowed = {0x80000001u, 0, 0, 8}}};
  step.references = {{.token = 0, .sample = 1}};
  step.pools = {{.begin = 2, .end = 4}};
  return step;
}

BlockTables ExampleTables() {
  StepDescriptor step;
  step.query_offsets = {0, 2, 3};
  step.sequences = {{.slot = 3, .query_len = 2, .context_len = 2},
                    {.slot = 2, .query_len = 1, .context_len = 20}};
  step.groups = {
      {.tables = {{}, {.length_before = 0, .length_after = 5, .first_live = 0}},
       .blocks = {3, 4, 5, 6, 15},
       .slot_mapping = {}},
      {.tables = {{}, {.length_before = 0, .length_after = 5, .first_live = 3}},
       .blocks = {2, 9},
       .slot_mapping = {}},
  };
  step.rows = {{.token = 0, .wants = kWantLogits}, {.token = 1}, {.token = 2}};
  step.sampling = {{.position = 2}, {.position = 20}};
  BlockTables tables(ExampleLimits());
  tables.Apply(step);
  return tables;
}

StepDescriptor LargeStep(uint32_t seqs, uint32_t context_len, uint32_t block_size,
                         uint32_t length_before) {
  StepDescriptor step;
  step.step_id = StepId{1};
  step.epoch = Epoch{1};
  step.kind = StepKind::kDecode;
  step.num_scheduled_tokens = seqs;
  step.num_seqs_active = seqs;
  step.query_offsets = {0};
  GroupDeltas group;
  const uint32_t length = (context_len + block_size - 1) / block_size;
  for (uint32_t s = 0; s < seqs; ++s) {
    step.tokens.push_back(s);
    step.positions.push_back(context_len - 1);
    step.query_offsets.push_back(s + 1);
    step.sequences.push_back({.slot = s, .query_len = 1, .context_len = context_len});
    group.tables.push_back({.length_before = length_before, .length_after = length});
    for (uint32_t b = length_before; b < length; ++b) group.blocks.push_back(s * length + b);
    const uint32_t last = s * length + length - 1;
    group.slot_mapping.push_back(last * block_size + (context_len - 1) % block_size);
    step.rows.push_back({.token = s});
    step.sampling.push_back({.position = context_len});
  }
  step.groups.push_back(std::move(group));
  return step;
}

StepLimits LargeLimits(const StepDescriptor& step, uint32_t block_size) {
  return {.max_tokens = step.num_scheduled_tokens,
          .max_seqs = step.num_seqs_active,
          .max_model_len = 1u << 20,
          .vocab_size = 150000,
          .block_size = block_size,
          .num_blocks = {step.num_seqs_active * step.groups[0].tables[0].length_after},
          .windows = {},
          .max_result_bytes = 1 << 20};
}

StepResult ExampleResult() {
  StepResult result;
  result.step_id = StepId{5};
  result.epoch = Epoch{3};
  result.rank = 1;
  result.rows = {{.tokens = {42}, .logprobs = {}, .logits = {0.5f, -1.0f, 2.0f}},
                 {.tokens = {7, 8}, .logprobs = {{7, -0.25f, 1}, {9, -3.0f, 12}}, .logits = {}}};
  result.pooled = {0.25, -1e300};
  result.guesses = {5, -1};
  result.timings = {.received_at_us = uint64_t{1} << 40,
                    .receive_us = 1,
                    .encode_us = 20,
                    .submit_us = 3,
                    .wait_us = 4000,
                    .collective_us = 50};
  return result;
}

}  // namespace tandem::step
