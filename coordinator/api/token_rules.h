// Rules about tokens that clients write as text or in any order, as the engine takes them.
#ifndef TANDEM_COORDINATOR_API_TOKEN_RULES_H_
#define TANDEM_COORDINATOR_API_TOKEN_RULES_H_

#include <cstddef>
#include <vector>

#include "absl/status/status.h"
#include "coordinator/api/generate_params.h"
#include "coordinator/api/serving_model.h"
#include "coordinator/engine/request.h"

namespace tandem::coordinator {

inline constexpr size_t kMaxBadWords = 256;
inline constexpr size_t kMaxBadWordBytes = 256;
inline constexpr size_t kMaxBreakers = 32;
inline constexpr size_t kMaxBreakerBytes = 40;  // as llama.cpp's

// Fills in logit_bias, banned_sequences and, if DRY is on, dry_breakers. INVALID_ARGUMENT naming
// the field, the found and the allowed value.
absl::Status FillTokenRules(const GenerateParams& params, const ServingModel& model, Sampling& out);

}  // namespace tandem::coordinator

#endif  // TANDEM_COORDINATOR_API_TOKEN_RULES_H_
