// StepTimeModel: how long a step takes the workers, learned from those that they have computed.
//
// The time is a sum of what a step is made of, each part times a cost that is not negative:
//
//   time = c0 + c1 * decoded rows + c2 * positions these see
//             + c3 * prefill tokens + c4 * positions these see
//
// The costs minimize the squares of the relative errors over the last kWindow steps with prefill
// and the last kWindow without, by coordinate descent (Franc, Hlavac and Navara, Sequential
// Coordinate-Wise Algorithm for the Non-negative Least Squares Problem, CAIP 2005). Two windows, so
// that a long time of decoding alone does not make it forget what prefill costs. Steps of one load
// take different times: with prefill it predicts what nine of ten do not exceed. Constant work per
// step; single-threaded.
#ifndef TANDEM_COORDINATOR_SCHEDULER_STEP_TIME_MODEL_H_
#define TANDEM_COORDINATOR_SCHEDULER_STEP_TIME_MODEL_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>

#include "common/base/clock.h"
#include "coordinator/scheduler/plan.h"

namespace tandem::coordinator {

// What a step is made of. A token at position p sees p + 1 positions. Drafts are rows of their own,
// like the token before them and those computed again.
struct StepLoad {
  uint64_t decode_rows = 0;
  uint64_t decode_positions = 0;
  uint64_t prefill_tokens = 0;
  uint64_t prefill_positions = 0;

  static StepLoad Of(const Plan& plan);
  void AddDecode(uint32_t position);
  // The tokens [begin, begin + num_tokens) of a prompt.
  void AddPrefill(uint32_t begin, uint32_t num_tokens);
};

class StepTimeModel {
 public:
  static constexpr size_t kWindow = 64;

  // A step of `load` took `time` > 0.
  void Learn(const StepLoad& load, Duration time);
  // Zero before anything was learned.
  Duration Predict(const StepLoad& load) const;
  // The most prefill tokens of a step in the window; 0 before there was any.
  uint64_t most_prefill_tokens() const;

 private:
  static constexpr size_t kParts = 5;
  using Parts = std::array<double, kParts>;
  struct Sample {
    Parts parts;  // divided by the time, so that every step counts alike
    uint64_t prefill_tokens;
  };

  static Parts PartsOf(const StepLoad& load);
  double TimeOf(const Parts& parts) const;
  void Fit();
  void FitSpread();

  std::deque<Sample> with_prefill_, without_prefill_;  // newest last
  Parts costs_us_{};
  double spread_ = 1;  // of a step with prefill: the predicted time by the fitted one
};

}  // namespace tandem::coordinator

#endif  // TANDEM_COORDINATOR_SCHEDULER_STEP_TIME_MODEL_H_
