// TraceEvent: what the engine and its workers did, as a recording keeps it; in proto/tandem/v1/
// trace.proto it goes to clients. Plain data. Times are of the system's monotonic clock.
#ifndef TANDEM_COORDINATOR_OBSERVE_TRACE_EVENT_H_
#define TANDEM_COORDINATOR_OBSERVE_TRACE_EVENT_H_

#include <cstdint>
#include <string>
#include <variant>

#include "common/base/clock.h"
#include "common/base/ids.h"
#include "common/step/descriptor.h"
#include "common/step/result.h"

namespace tandem::coordinator {

// A step was sent: scheduled, built and submitted, each from the end of the part before.
struct StepSubmitted {
  StepId step{};
  Epoch epoch{};
  step::StepKind kind = step::StepKind::kMixed;
  uint32_t num_sequences = 0;
  uint32_t prefill_tokens = 0;
  uint32_t decode_tokens = 0;  // with drafts, and those computed again
  uint32_t draft_tokens = 0;
  TimePoint begin{}, scheduled{}, built{}, submitted{};
};

// A step's result was waited for, applied and delivered.
struct StepSettled {
  StepId step{};
  TimePoint begin{}, answered{}, applied{}, delivered{};
};

// A rank's part of a step.
struct RankStep {
  uint32_t rank = 0;
  StepId step{};
  Epoch epoch{};
  step::StepTimings timings{};
  TimePoint answered{};  // when the coordinator took its result
};

struct RequestChange {
  enum class What {
    kArrived,    // or was there when the recording began
    kScheduled,  // for the first time, or again after it waited
    kDecodes,    // has its first token since it was scheduled
    kPreempted,  // waits again, so that others have room
    kRewound,    // waits again, because workers were lost
    kEnded,
  };
  What what = What::kArrived;
  uint64_t handle = 0;  // of the request, RequestHandle
  TimePoint at{};
  // Of kArrived.
  std::string request_id{};
  std::string trace_id{};
  uint32_t prompt_tokens = 0;
  // Of kEnded.
  uint32_t completion_tokens = 0;
  uint32_t cached_tokens = 0;
  const char* reason = "";  // "stop", "length", "cancelled" or "error"
};

struct WorkersChange {
  TimePoint at{};
  bool lost = false;  // else others take steps
  Epoch epoch{};      // of those lost, or of the new ones
  std::string reason{};
};

using TraceEvent = std::variant<StepSubmitted, StepSettled, RankStep, RequestChange, WorkersChange>;

}  // namespace tandem::coordinator

#endif  // TANDEM_COORDINATOR_OBSERVE_TRACE_EVENT_H_
