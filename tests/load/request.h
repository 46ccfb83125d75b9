// LoadRequest: one request of a load, as planned before the run.
#ifndef TANDEM_TESTS_LOAD_REQUEST_H_
#define TANDEM_TESTS_LOAD_REQUEST_H_

#include <cstdint>
#include <string>
#include <vector>

namespace tandem::load {

struct LoadRequest {
  std::vector<int32_t> token_ids;  // the prompt, or empty and it is `text`
  std::string text;
  uint32_t prompt_tokens = 0;          // 0: known once the server has answered
  uint32_t output_tokens = 1;          // max_tokens
  double at_s = 0;                     // a trace's send time, from the run's start
  uint32_t cancel_after_messages = 0;  // 0: never cancelled
  bool slow_reader = false;
};

}  // namespace tandem::load

#endif  // TANDEM_TESTS_LOAD_REQUEST_H_
