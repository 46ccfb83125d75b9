// Driver: steps of a scheduler without workers.
#ifndef TANDEM_TESTS_COORDINATOR_SCHEDULER_SCHEDULER_DRIVER_H_
#define TANDEM_TESTS_COORDINATOR_SCHEDULER_SCHEDULER_DRIVER_H_

#include <gtest/gtest.h>

#include <algorithm>
#include <deque>
#include <memory>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "coordinator/scheduler/scheduler.h"

namespace tandem::coordinator {

inline constexpr uint32_t kBlockSize = 4;

// Drives a scheduler as the engine does, with made-up tokens.
class Driver {
 public:
  explicit Driver(SchedulerConfig config, uint32_t num_blocks, bool prefix_cache = false)
      : Driver(config, std::vector<KvGroup>{{.num_blocks = num_blocks, .window_tokens = 0}},
               prefix_cache) {}
  Driver(SchedulerConfig config, std::vector<KvGroup> groups, bool prefix_cache)
      : Driver(config, KvCacheConfig{.block_size = kBlockSize,
                                     .enable_prefix_cache = prefix_cache,
                                     .groups = std::move(groups)}) {}
  Driver(SchedulerConfig config, KvCacheConfig cache)
      : kv_(std::move(cache)), scheduler_(config, kv_) {}

  ~Driver() {
    for (auto& sequence : sequences_) scheduler_.Finish(*sequence);
    EXPECT_EQ(kv_.Stats().free_blocks, kv_.Stats().total_blocks);
    Check();
  }

  struct Place {
    int32_t priority = 0;
    int64_t virtual_arrival_us = 0;
  };
  // A prompt that shares nothing with others, unless `first` is the same.
  Sequence& Add(uint32_t prompt_len, TokenId first = -1) { return Add(prompt_len, first, {}); }
  Sequence& Add(uint32_t prompt_len, TokenId first, Place place) {
    const uint64_t handle = sequences_.size() + 1;
    std::vector<TokenId> prompt(prompt_len);
    std::iota(prompt.begin(), prompt.end(), first >= 0 ? first : TokenId(1000 * handle));
    sequences_.push_back(std::make_unique<Sequence>(handle, std::move(prompt)));
    sequences_.back()->priority = place.priority;
    sequences_.back()->virtual_arrival_us = place.virtual_arrival_us;
    scheduler_.Enqueue(*sequences_.back());
    return *sequences_.back();
  }

  // Schedules, settles and draws; returns what the plan was.
  std::string Step() {
    last_ = scheduler_.Schedule();
    Check();
    std::string text = last_.DebugString();
    scheduler_.Advance(last_);
    scheduler_.Settle(last_);
    for (const PlanEntry& entry : last_.entries) {
      if (entry.samples) entry.sequence->tokens.push_back(7);
    }
    Check();
    return text;
  }

  // Schedules and submits a step that stays in flight, unless it is empty; returns what the plan
  // was.
  std::string Submit() {
    last_ = scheduler_.Schedule();
    Check();
    if (last_.entries.empty()) return "";
    scheduler_.Advance(last_);
    in_flight_.push_back(last_);
    return last_.DebugString();
  }
  // Settles the oldest step in flight and draws: as many drafts as `num_accepted` of each, and a
  // token.
  void Collect(uint32_t num_accepted = 0) {
    Plan plan = std::move(in_flight_.front());
    in_flight_.pop_front();
    for (PlanEntry& entry : plan.entries) {
      entry.num_accepted = std::min(num_accepted, entry.num_drafts);
    }
    scheduler_.Settle(plan);
    for (const PlanEntry& entry : plan.entries) {
      Sequence& sequence = *entry.sequence;
      if (!entry.samples || sequence.state == SequenceState::kFinished) continue;
      const auto drafts = sequence.drafts.begin();
      sequence.tokens.insert(sequence.tokens.end(), drafts, drafts + entry.num_accepted);
      sequence.tokens.push_back(7);
    }
    Check();
  }

  // The workers are lost, with what is in flight.
  void Abandon() {
    in_flight_.clear();
    scheduler_.Rewind(/*blame=*/true);
    Check();
  }
  // Schedules and submits, then the workers are lost.
  Sequence* Lose(bool blame = true) {
    last_ = scheduler_.Schedule();
    scheduler_.Advance(last_);
    Sequence* const culprit = scheduler_.Rewind(blame);
    Check();
    return culprit;
  }

  void Check() {
    const absl::Status status = scheduler_.CheckIntegrity();
    ASSERT_TRUE(status.ok()) << status;
  }

  Scheduler& scheduler() { return scheduler_; }
  BlockManager& kv() { return kv_; }
  const Plan& last() const { return last_; }

 private:
  BlockManager kv_;
  std::vector<std::unique_ptr<Sequence>> sequences_;
  Scheduler scheduler_;
  Plan last_;
  std::deque<Plan> in_flight_;
};

inline SchedulerConfig Config(uint32_t seqs, uint32_t budget, uint32_t chunk,
                              SchedulingPolicy policy = SchedulingPolicy::kDecodeFirst) {
  return {.max_num_seqs = seqs,
          .max_num_batched_tokens = budget,
          .chunked_prefill_size = chunk,
          .max_model_len = 4096,
          .policy = policy};
}

// The same, where others pass what waits.
inline SchedulerConfig Passing(uint32_t seqs, uint32_t budget, uint32_t chunk) {
  SchedulerConfig config = Config(seqs, budget, chunk);
  config.max_queue_skips = 8;
  return config;
}

// A prompt of `shared` tokens that others begin with too, and `own` ones.
inline Sequence& AddSharing(Driver& driver, uint32_t shared, uint32_t own,
                            Driver::Place place = {}) {
  Sequence& sequence = driver.Add(shared + own, /*first=*/0, place);
  for (uint32_t i = shared; i < shared + own; ++i) {
    sequence.tokens[i] = static_cast<TokenId>(1000 * sequence.handle + i);
  }
  return sequence;
}

}  // namespace tandem::coordinator

#endif  // TANDEM_TESTS_COORDINATOR_SCHEDULER_SCHEDULER_DRIVER_H_
