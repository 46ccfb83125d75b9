// Measures an engine as llama-bench does a model: prefill and decode separately, with random token
// ids.
//
// Calls the engine's core directly, on the calling thread, without server and tokenizer.
#ifndef TANDEM_CLIENT_BENCH_MEASURE_H_
#define TANDEM_CLIENT_BENCH_MEASURE_H_

#include <cstdint>
#include <memory>
#include <random>
#include <vector>

#include "absl/status/statusor.h"
#include "common/base/clock.h"
#include "coordinator/engine/engine_core.h"

namespace tandem::client {

struct Measurement {
  double tokens_per_second = 0;            // the median repetition's
  coordinator::EngineStepTimings timings;  // of the measured steps, summed over the repetitions
};

// Of decoding with guesses beside decoding without, in turn.
struct DraftMeasurement {
  double ratio = 0;  // of the speeds, the median repetition's
  double least_ratio = 0;
  double most_ratio = 0;
  double tokens_per_second = 0;  // with guesses, the median repetition's
  int64_t drafts = 0;            // guesses that were computed, in all repetitions
  int64_t accepted = 0;          // of those
};

// Of one sequence with a long prompt, the median repetition's.
struct LongMeasurement {
  Duration prefill{};  // of the whole prompt, in as many steps as the engine makes of it
  // How much longer a step that decodes takes after it than after a short prompt, in turn; may be
  // below zero.
  Duration decode_step_more{};
};

// Single-threaded. The engine must outlive it, be idle, and have its prefix cache off.
class Measure {
 public:
  // `seed` is for the random prompts; those of sequences that decode have `context` tokens. `clock`
  // must outlive this.
  Measure(coordinator::EngineCore& engine, uint64_t seed, uint32_t context,
          const Clock& clock = Clock::System())
      : engine_(engine), clock_(clock), context_(context), random_(seed) {}

  // A prompt of `tokens` in one step. An additional first repetition is not counted.
  absl::StatusOr<Measurement> Prefill(uint32_t tokens, uint32_t repetitions);
  // `batch` sequences that decode `tokens` each; the steps that only decode are counted.
  absl::StatusOr<Measurement> Decode(uint32_t batch, uint32_t tokens, uint32_t repetitions);
  // A prompt of `prompt_tokens` tokens, and `tokens` decoded after it.
  absl::StatusOr<LongMeasurement> Long(uint32_t prompt_tokens, uint32_t tokens,
                                       uint32_t repetitions);
  // `prompts` prompts of `tokens` each in one step. An additional first repetition is not counted.
  absl::StatusOr<Duration> SeveralPrompts(uint32_t prompts, uint32_t tokens, uint32_t repetitions);
  // What Decode measures without guesses, and again with guesses of which the part `acceptance` is
  // right. The engine chooses how many are worth computing, as it does for all guesses.
  absl::StatusOr<DraftMeasurement> Drafts(uint32_t batch, uint32_t tokens, double acceptance,
                                          uint32_t repetitions);

 private:
  class Listener;

  // The time of the measured steps of one repetition, whose timings are added to `timings`.
  absl::StatusOr<Duration> RunPrefill(uint32_t tokens, coordinator::EngineStepTimings& timings);
  // Of sequences that decode `tokens` each. `answers`: what they draw.
  absl::StatusOr<Duration> RunDecode(const std::vector<coordinator::Request>& requests,
                                     uint32_t tokens, coordinator::EngineStepTimings& timings,
                                     std::vector<std::vector<TokenId>>& answers);
  absl::StatusOr<LongMeasurement> RunLong(uint32_t prompt_tokens, uint32_t tokens);
  absl::Status WarmUp(uint32_t batch, uint32_t tokens);  // of a decode measurement
  std::vector<coordinator::Request> DecodeRequests(uint32_t batch, uint32_t tokens);
  coordinator::Request MakeRequest(uint32_t prompt_tokens, uint32_t max_tokens);
  std::shared_ptr<Listener> Add(coordinator::Request request);
  // `num_steps` steps, which must be at least what the sequences need.
  absl::StatusOr<Duration> Time(uint32_t num_steps, coordinator::EngineStepTimings& timings);

  coordinator::EngineCore& engine_;
  const Clock& clock_;
  const uint32_t context_;
  std::mt19937_64 random_;
  uint64_t last_arrival_ = 0;
};

}  // namespace tandem::client

#endif  // TANDEM_CLIENT_BENCH_MEASURE_H_
