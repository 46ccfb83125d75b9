// Reasoning: what a model may write before an answer that has a form.
#ifndef TANDEM_COORDINATOR_GRAMMAR_REASONING_H_
#define TANDEM_COORDINATOR_GRAMMAR_REASONING_H_

#include <cstddef>
#include <string>

#include "absl/status/statusor.h"
#include "coordinator/grammar/expression.h"

namespace tandem::coordinator::grammar {

// Thoughts are any text up to the first `end`. What is looked for is found in the text, be it
// characters or names of control tokens, of which thoughts may have any.
struct Reasoning {
  // What the text begins with if it has thoughts, after two line ends at most: else it begins with
  // the answer. Empty: the prompt has begun them.
  std::string start{};
  std::string end{};
  // What the answer follows, right after `end`; may be empty.
  std::string answer_start{};
};

inline constexpr size_t kMaxReasoningBytes = 256;  // of each of the three

// The texts of `form` behind thoughts: between `answer_start` and the answer there may be two line
// ends. A control token is kControlToken and its name, and may stand where its name does, but not
// in the answer. INVALID_ARGUMENT: no `end`, one that is too long or not UTF-8.
absl::StatusOr<Grammar> WithReasoning(const Reasoning& reasoning, Grammar form);

}  // namespace tandem::coordinator::grammar

#endif  // TANDEM_COORDINATOR_GRAMMAR_REASONING_H_
