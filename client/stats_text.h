// The metrics of GetStats as text, under their own names.
#ifndef TANDEM_CLIENT_STATS_TEXT_H_
#define TANDEM_CLIENT_STATS_TEXT_H_

#include <string>

#include "proto/tandem/v1/generation.pb.h"

namespace tandem::client {

// One line per metric: name, value and meaning, each ending in a newline.
std::string FormatStats(const v1::GetStatsResponse& stats);

}  // namespace tandem::client

#endif  // TANDEM_CLIENT_STATS_TEXT_H_
