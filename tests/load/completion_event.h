// The JSON of OpenAI's completions API: requests, and the events of an answer.
#ifndef TANDEM_TESTS_LOAD_COMPLETION_EVENT_H_
#define TANDEM_TESTS_LOAD_COMPLETION_EVENT_H_

#include <string>

#include "absl/status/statusor.h"
#include "tests/load/backend.h"

namespace tandem::load {

// The body of a streaming request that asks for usage.
std::string CompletionBody(const LoadRequest& request, const std::string& model,
                           const RequestSettings& settings);

struct CompletionEvent {
  bool has_choice = false;  // counts as a message with a token, as in vLLM's benchmark
  bool finished = false;    // has a finish reason, or is [DONE]
  ServerUsage usage;        // 0 if it has none
};

// INTERNAL for what is not JSON, or an error that the server reports.
absl::StatusOr<CompletionEvent> ParseCompletionEvent(const std::string& data);

// The id of the first model of /v1/models.
absl::StatusOr<std::string> FirstModel(const std::string& body);

}  // namespace tandem::load

#endif  // TANDEM_TESTS_LOAD_COMPLETION_EVENT_H_
