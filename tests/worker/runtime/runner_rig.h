// What runner tests share: the small llama model on a backend, steps of it, and a runner.
#ifndef TANDEM_TESTS_WORKER_RUNTIME_RUNNER_RIG_H_
#define TANDEM_TESTS_WORKER_RUNTIME_RUNNER_RIG_H_

#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "tests/common/config/named.h"
#include "worker/runtime/model_runner.h"

namespace tandem::worker {

inline constexpr char kLlama[] = "tests/golden/arch/llama/model.gguf";

inline LoadOptions LlamaOptions(const std::string& device) {
  return {.config = {.model = {.path = kLlama},
                     .device = {.device = testing::Named<config::Device>(device),
                                .cpu_kernels = config::CpuKernels::kReference,
                                .threads = 1}}};
}

inline absl::StatusOr<std::unique_ptr<LoadedModel>> LoadModel(const LoadOptions& options) {
  absl::StatusOr<std::unique_ptr<DescribedModel>> described = DescribeModel(options);
  if (!described.ok()) return described.status();
  return LoadWeights(*std::move(described), nullptr);
}

inline absl::StatusOr<std::unique_ptr<LoadedModel>> LoadLlama(const std::string& device,
                                                              int rank = 0, int size = 1,
                                                              const std::string& path = kLlama) {
  LoadOptions options = LlamaOptions(device);
  options.config.model.path = path;
  options.assignment.rank = rank;
  options.assignment.size = size;
  return LoadModel(options);
}

inline Deadline Soon() { return Deadline::After(std::chrono::seconds(60)); }

// One sequence of a step: tokens from position `begin` on, which stand in blocks of 8 from block
// `first_block` on.
struct Piece {
  uint32_t slot = 0;
  int32_t first_block = 0;
  uint32_t begin = 0;
  std::vector<TokenId> tokens;
  uint32_t blocks_sent = 0;  // of its table, by the steps before; 0: it is new in its slot
};

// A greedy step of epoch 1 that samples after the last token of every piece.
inline step::StepDescriptor MakeStep(uint64_t id, const std::vector<Piece>& pieces,
                                     size_t num_groups = 1) {
  constexpr uint32_t kBlock = 8;
  step::StepDescriptor step;
  step.step_id = StepId{id};
  step.epoch = Epoch{1};
  step.kind = step::StepKind::kDecode;
  step.query_offsets = {0};
  step.groups.resize(num_groups);
  for (const Piece& piece : pieces) {
    const auto count = static_cast<uint32_t>(piece.tokens.size());
    const uint32_t context = piece.begin + count;
    if (count > 1) step.kind = step::StepKind::kMixed;
    step.sequences.push_back({.slot = piece.slot, .query_len = count, .context_len = context});
    for (uint32_t i = 0; i < count; ++i) {
      const auto position = static_cast<int32_t>(piece.begin + i);
      step.tokens.push_back(piece.tokens[i]);
      step.positions.push_back(position);
      for (auto& group : step.groups) {
        group.slot_mapping.push_back(piece.first_block * static_cast<int32_t>(kBlock) + position);
      }
    }
    step.query_offsets.push_back(static_cast<uint32_t>(step.tokens.size()));
    for (auto& group : step.groups) {
      const uint32_t length = (context + kBlock - 1) / kBlock;
      group.tables.push_back(
          {.length_before = piece.blocks_sent, .length_after = length, .first_live = 0});
      for (uint32_t b = piece.blocks_sent; b < length; ++b) {
        group.blocks.push_back(piece.first_block + static_cast<int32_t>(b));
      }
    }
    step.rows.push_back({.token = static_cast<uint32_t>(step.tokens.size() - 1),
                         .wants = step::kWantSample,
                         .top_n = 0,
                         .logprobs_of = {}});
    step.sampling.push_back({.temperature = 0, .position = context, .adjustments = {}});
  }
  step.num_scheduled_tokens = static_cast<uint32_t>(step.tokens.size());
  step.num_seqs_active = static_cast<uint32_t>(step.sequences.size());
  return step;
}

// The next token of every piece becomes the one that the step before has drawn: that step's sample
// `first` for the first piece.
inline void ReferToSamples(step::StepDescriptor& step, uint32_t first = 0) {
  for (uint32_t s = 0; s < step.num_seqs_active; ++s) {
    const uint32_t last = step.query_offsets[s + 1] - 1;
    step.tokens[last] = 0;
    step.references.push_back({.token = last, .sample = first + s});
  }
}

}  // namespace tandem::worker

#endif  // TANDEM_TESTS_WORKER_RUNTIME_RUNNER_RIG_H_
