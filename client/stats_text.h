// GetStats' answer by the message's own field names.
#ifndef TANDEM_CLIENT_STATS_TEXT_H_
#define TANDEM_CLIENT_STATS_TEXT_H_

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "proto/tandem/v1/generation.pb.h"

namespace tandem::client {

// One line per field, each ending in a newline.
std::string FormatStats(const v1::GetStatsResponse& stats);
// Name and value of every field, in order.
std::vector<std::pair<std::string, int64_t>> StatFields(const v1::GetStatsResponse& stats);

}  // namespace tandem::client

#endif  // TANDEM_CLIENT_STATS_TEXT_H_
