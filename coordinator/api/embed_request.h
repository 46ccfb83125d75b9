// Converts an untrusted request for embeddings to checked engine requests, one per input.
#ifndef TANDEM_COORDINATOR_API_EMBED_REQUEST_H_
#define TANDEM_COORDINATOR_API_EMBED_REQUEST_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "coordinator/api/serving_model.h"
#include "coordinator/api/text_or_ids.h"
#include "coordinator/engine/request.h"

namespace tandem::coordinator {

// Unchecked. At most kMaxChoices inputs.
struct EmbedParams {
  std::string request_id{};  // empty: random
  std::string cache_salt{};
  std::string adapter{};  // empty: the model alone
  int32_t priority = 0;
  std::vector<TextOrIds> inputs{};
  tokenizer::EncodeOptions encode{};  // of texts
  std::optional<Pooling> pooling{};   // unset: the model's
  std::optional<int32_t> dimensions{};
};

// Tokenizes and checks; the engine's Add checks ids and lengths. INVALID_ARGUMENT naming field,
// found and allowed value. The caller sets the streams. Thread-safe.
absl::StatusOr<std::vector<Request>> BuildEmbedRequests(EmbedParams params,
                                                        const ServingModel& model);

// The first `dimensions` values of an embedding, or all, and with `normalize` of length 1, unless
// all are 0.
void FinishEmbedding(std::optional<int32_t> dimensions, bool normalize,
                     std::vector<float>& embedding);

}  // namespace tandem::coordinator

#endif  // TANDEM_COORDINATOR_API_EMBED_REQUEST_H_
