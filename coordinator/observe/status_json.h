// What the status page shows, as JSON.
#ifndef TANDEM_COORDINATOR_OBSERVE_STATUS_JSON_H_
#define TANDEM_COORDINATOR_OBSERVE_STATUS_JSON_H_

#include <prometheus/metric_family.h>

#include <string>
#include <vector>

#include "coordinator/observe/server_state.h"

namespace tandem::coordinator {

// {"model", "version", "state", "text",
//  "ranks": [{"stage", "loaded" (0 to 1)}],
//  "metrics": {NAME: [{"labels": {}, "value"}]},
//  "histograms": {NAME: {"bounds", "counts" (cumulative, one more than bounds), "sum"}}}
std::string StatusJson(const std::string& model, const ServerView& state,
                       const std::vector<prometheus::MetricFamily>& families);

}  // namespace tandem::coordinator

#endif  // TANDEM_COORDINATOR_OBSERVE_STATUS_JSON_H_
