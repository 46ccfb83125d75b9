// GetStats' answer for people and for programs, with the message's own field names.
#ifndef TANDEM_CLIENT_STATS_TEXT_H_
#define TANDEM_CLIENT_STATS_TEXT_H_

#include <string>

#include "proto/tandem/v1/generation.pb.h"

namespace tandem::client {

// One line per field, each ending in a newline.
std::string FormatStats(const v1::GetStatsResponse& stats);
// One object on one line; every field is there, zeros too.
std::string ToJson(const v1::GetStatsResponse& stats);

}  // namespace tandem::client

#endif  // TANDEM_CLIENT_STATS_TEXT_H_
