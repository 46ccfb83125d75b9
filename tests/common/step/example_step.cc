#include "tests/common/step/example_step.h"

namespace tandem::step {

StepLimits ExampleLimits() {
  return {.max_tokens = 8,
          .max_seqs = 4,
          .max_model_len = 32,
          .vocab_size = 100,
          .block_size = 4,
          .num_blocks = {16, 10},
          .windows = {0, 5},
          .max_result_bytes = 8192};
}

StepDescriptor ExampleStep() {
  StepDescriptor step;
  step.step_id = StepId{5};
  step.epoch = Epoch{3};
  step.num_scheduled_tokens = 4;
  step.num_seqs_active = 2;
  step.tokens = {7, 1, 2, 3};
  step.positions = {20, 0, 1, 2};
  step.query_offsets = {0, 1, 4};
  step.sequences = {{.slot = 2, .query_len = 1, .context_len = 21},
                    {.slot = 0, .query_len = 3, .context_len = 3}};
  step.groups = {
      {.table_offsets = {0, 6, 7},
       .blocks = {3, 4, 5, 6, 15, 8, 0},
       .slot_mapping = {8 * 4 + 0, 0, 1, 2}},
      // Token 20 sees 16..20: blocks 0 to 3 are behind the window.
      {.table_offsets = {0, 6, 8},
       .blocks = {kNoBlock, kNoBlock, kNoBlock, 2, 9, 4, 7, 1},
       .slot_mapping = {4 * 4 + 0, 28, 29, 30}},
  };
  step.rows = {{.token = 0, .wants = kWantSample | kWantLogits}, {.token = 3}};
  step.sampling = {
      {.temperature = 0.7f, .top_p = 0.9f, .seed = 11, .position = 21, .banned = {0, 99}},
      {.temperature = 0.0f, .top_k = 40, .position = 3}};
  return step;
}

StepDescriptor LargeStep(uint32_t seqs, uint32_t context_len, uint32_t block_size) {
  StepDescriptor step;
  step.step_id = StepId{1};
  step.epoch = Epoch{1};
  step.kind = StepKind::kDecode;
  step.num_scheduled_tokens = seqs;
  step.num_seqs_active = seqs;
  step.query_offsets = {0};
  GroupTables group;
  group.table_offsets = {0};
  BlockId next = 0;
  for (uint32_t s = 0; s < seqs; ++s) {
    step.tokens.push_back(s);
    step.positions.push_back(context_len - 1);
    step.query_offsets.push_back(s + 1);
    step.sequences.push_back({.slot = s, .query_len = 1, .context_len = context_len});
    for (uint32_t p = 0; p < context_len; p += block_size) group.blocks.push_back(next++);
    group.table_offsets.push_back(group.blocks.size());
    group.slot_mapping.push_back(group.blocks.back() * block_size + (context_len - 1) % block_size);
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
          .num_blocks = {static_cast<uint32_t>(step.groups[0].blocks.size())},
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
  result.timings = {.receive_us = 1, .encode_us = 20, .submit_us = 3, .wait_us = 4000};
  return result;
}

}  // namespace tandem::step
