// Limits shared by folders that do not include each other.
#ifndef TANDEM_COMMON_BASE_LIMITS_H_
#define TANDEM_COMMON_BASE_LIMITS_H_

#include <cstdint>

namespace tandem {

// The most likely tokens whose log-probabilities one row may request, at most.
inline constexpr uint32_t kMaxTopLogprobs = 20;
// The continuations that a request may ask for, at most.
inline constexpr int32_t kMaxChoices = 128;

}  // namespace tandem

#endif  // TANDEM_COMMON_BASE_LIMITS_H_
