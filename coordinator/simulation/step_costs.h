// StepCosts: how long a step takes a server's workers, from steps that were measured.
//
//   a step that only decodes:  decode(sequences) + attention
//   any other:                 prefill(all its tokens) + head(samples) + attention
//   attention:                 a time for each position that a token sees, decoded or of a prompt
//
// decode and prefill are the measured steps without their attention, with straight lines between
// them and beyond; head is what a step that decodes takes longer than one of as many tokens of one
// prompt, which draws once.
#ifndef TANDEM_COORDINATOR_SIMULATION_STEP_COSTS_H_
#define TANDEM_COORDINATOR_SIMULATION_STEP_COSTS_H_

#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "common/base/clock.h"
#include "coordinator/scheduler/step_time_model.h"

namespace tandem::coordinator {

// What the tokens of a whole prompt see: each those before it and itself.
inline double PromptPositions(double tokens) { return tokens * (tokens + 1) / 2; }

// Times by size, sizes ascending.
struct MeasuredTimes {
  std::vector<uint32_t> sizes{};
  std::vector<double> us{};

  void Add(uint32_t size, double time_us) {
    sizes.push_back(size);
    us.push_back(time_us);
  }
  bool operator==(const MeasuredTimes&) const = default;
};

struct StepMeasurements {
  MeasuredTimes prefill{};      // by the tokens of one whole prompt, computed in one step
  MeasuredTimes decode{};       // by the sequences that decode one token each
  double decode_positions = 1;  // that each of those saw, on average
  double decode_position_ns = 0;
  double prefill_position_ns = 0;

  // INVALID_ARGUMENT, by the names of a profile (server_profile.h), for what is missing, not
  // ascending or not positive.
  absl::Status Validate() const;
  bool operator==(const StepMeasurements&) const = default;
};

// Immutable.
class StepCosts {
 public:
  // REQUIRES: measured.Validate() is OK.
  explicit StepCosts(const StepMeasurements& measured);

  // Of a step that draws `num_samples` tokens; at least a microsecond, at most
  // eleven days.
  Duration Of(const StepLoad& load, uint32_t num_samples) const;

 private:
  double HeadUs(uint32_t num_samples) const;

  const double decode_position_us_;
  const double prefill_position_us_;
  MeasuredTimes prefill_, decode_;  // without attention
};

}  // namespace tandem::coordinator

#endif  // TANDEM_COORDINATOR_SIMULATION_STEP_COSTS_H_
