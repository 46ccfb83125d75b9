// What LogitAdjuster gives, counted anew from all tokens each time, by definition and not by speed.
#ifndef TANDEM_TESTS_COORDINATOR_ENGINE_NAIVE_ADJUSTMENTS_H_
#define TANDEM_TESTS_COORDINATOR_ENGINE_NAIVE_ADJUSTMENTS_H_

#include <cstddef>
#include <vector>

#include "common/step/descriptor.h"
#include "coordinator/engine/request.h"

namespace tandem::coordinator {

std::vector<step::LogitAdjustment> NaiveAdjustments(const Sampling& sampling,
                                                    const std::vector<TokenId>& tokens,
                                                    size_t prompt_len);

}  // namespace tandem::coordinator

#endif  // TANDEM_TESTS_COORDINATOR_ENGINE_NAIVE_ADJUSTMENTS_H_
