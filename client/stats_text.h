// GetStats' response as text and JSON, with the message's field names.
#ifndef TANDEM_CLIENT_STATS_TEXT_H_
#define TANDEM_CLIENT_STATS_TEXT_H_

#include <string>

#include "proto/tandem/v1/generation.pb.h"

namespace tandem::client {

// One line per field, each ending in a newline.
std::string FormatStats(const v1::GetStatsResponse& stats);
// One object on one line; every field is present, even if zero.
std::string ToJson(const v1::GetStatsResponse& stats);

}  // namespace tandem::client

#endif  // TANDEM_CLIENT_STATS_TEXT_H_
