// Converts an untrusted request to score continuations to checked engine requests, one each.
#ifndef TANDEM_COORDINATOR_API_SCORE_REQUEST_H_
#define TANDEM_COORDINATOR_API_SCORE_REQUEST_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "coordinator/api/serving_model.h"
#include "coordinator/api/text_or_ids.h"
#include "coordinator/engine/request.h"

namespace tandem::coordinator {

// Tokens of all continuations of a call together. Besides kMaxChoices continuations.
inline constexpr size_t kMaxScoredTokens = 1 << 17;

// Unchecked.
struct ScoreParams {
  std::string request_id{};  // empty: random
  std::string cache_salt{};
  std::string adapter{};  // empty: the model alone
  int32_t priority = 0;
  TextOrIds prompt{};
  std::vector<TextOrIds> continuations{};
  tokenizer::EncodeOptions encode{};  // of texts
};

// Tokenizes and checks; the engine's Add checks ids and lengths. After a text prompt a text is
// tokenized with the prompt, and begins with the first token that is not the prompt's own: as
// lm-evaluation-harness does it, except that where a token spans both it is scored whole. EOS,
// which some vocabularies add to a text, is added to none. INVALID_ARGUMENT naming field, found and
// allowed value. The caller sets the streams. Thread-safe.
absl::StatusOr<std::vector<Request>> BuildScoreRequests(ScoreParams params,
                                                        const ServingModel& model);

}  // namespace tandem::coordinator

#endif  // TANDEM_COORDINATOR_API_SCORE_REQUEST_H_
