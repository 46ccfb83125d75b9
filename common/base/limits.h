// Limits shared by folders that do not include each other.
#ifndef TANDEM_COMMON_BASE_LIMITS_H_
#define TANDEM_COMMON_BASE_LIMITS_H_

#include <cstdint>

namespace tandem {

// The most likely tokens whose log-probabilities one row may request, at most.
inline constexpr uint32_t kMaxTopLogprobs = 20;

}  // namespace tandem

#endif  // TANDEM_COMMON_BASE_LIMITS_H_
