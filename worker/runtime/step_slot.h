// StepSlot: the resources of one step in flight on a worker: its buffers and data for its result.
// There are as many as the backend takes submissions. Plain data.
#ifndef TANDEM_WORKER_RUNTIME_STEP_SLOT_H_
#define TANDEM_WORKER_RUNTIME_STEP_SLOT_H_

#include <cstdint>
#include <optional>
#include <utility>

#include "absl/status/status.h"
#include "common/base/clock.h"
#include "common/step/descriptor.h"
#include "common/step/result.h"
#include "kernels/backend.h"
#include "worker/runtime/draft_buffers.h"
#include "worker/runtime/step_buffers.h"

namespace tandem::worker {

struct StepSlot {
  explicit StepSlot(StepBuffers step_buffers) : buffers(std::move(step_buffers)) {}

  StepBuffers buffers;
  std::optional<DraftBuffers> draft{};  // with a draft model or head
  // Of the step in flight.
  bool in_flight = false;
  kernels::Ticket submission;
  absl::Status violation;      // of the step guard
  bool after_failure = false;  // an earlier step has failed since it began
  step::StepDescriptor step;
  step::StepTimings timings;
  int64_t submitted_at_us = 0;
  std::optional<Duration> collectives_before{};  // Communicator::TimeSpent

  // Whether the draft model or head computes the step's tokens.
  bool guesses() const { return draft.has_value() && !step.skips_guesser; }
};

// Identifies a step begun by ModelRunner.
struct StepTicket {
  uint32_t slot = 0;
};

}  // namespace tandem::worker

#endif  // TANDEM_WORKER_RUNTIME_STEP_SLOT_H_
