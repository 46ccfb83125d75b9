// Sample: what one request of a run experienced. Times are in seconds from the run's start.
#ifndef TANDEM_TESTS_LOAD_SAMPLE_H_
#define TANDEM_TESTS_LOAD_SAMPLE_H_

#include <cstdint>
#include <string>
#include <vector>

namespace tandem::load {

enum class Outcome {
  kCompleted,
  kFailed,
  kCancelled,  // on purpose, by --cancel-fraction
  kCut,        // in flight when the run was ended early
};

// A message with tokens.
struct TokenArrival {
  double at_s;
  uint32_t tokens;
};

struct Sample {
  double intended_s = 0;
  double sent_s = 0;
  double end_s = 0;
  std::vector<TokenArrival> arrivals;
  uint32_t prompt_tokens = 0;
  uint32_t output_tokens = 0;
  bool slow_reader = false;
  Outcome outcome = Outcome::kFailed;
  std::string error;

  bool completed() const { return outcome == Outcome::kCompleted; }
  // Those of a slow reader are its own doing. REQUIRES for the latencies below.
  bool has_latency() const { return completed() && !slow_reader && !arrivals.empty(); }
  double ttft_s() const { return arrivals.front().at_s - intended_s; }
  double e2el_s() const { return arrivals.back().at_s - intended_s; }
  // 0 for an answer of one token.
  double tpot_s() const {
    return output_tokens > 1 ? (e2el_s() - ttft_s()) / (output_tokens - 1) : 0;
  }
};

}  // namespace tandem::load

#endif  // TANDEM_TESTS_LOAD_SAMPLE_H_
