// WriteGuessable: a golden model, edited so that its next token can be guessed.
#ifndef TANDEM_TESTS_CLUSTER_DRAFTS_GUESSABLE_MODEL_H_
#define TANDEM_TESTS_CLUSTER_DRAFTS_GUESSABLE_MODEL_H_

#include <string>

namespace tandem::testing {

struct Guessable {
  // What layers add is so much of what they added. Without any of it the model draws by its last
  // token alone, and soon repeats itself.
  float of_layers = 0;
  // Its draft head, if it has one, sees the embedding of a token and so much of the state before
  // it, both normed, and has the model's own output.
  float of_state = 0;
};

// Returns the path of the edited copy of tests/golden/`model`, whose tensors are F32.
std::string WriteGuessable(const std::string& model, const Guessable& guessable);

}  // namespace tandem::testing

#endif  // TANDEM_TESTS_CLUSTER_DRAFTS_GUESSABLE_MODEL_H_
