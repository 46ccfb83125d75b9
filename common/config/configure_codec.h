// WorkerConfig and WorkerAssignment as the Configure message of the worker protocol: settings are
// pairs of name and text.
#ifndef TANDEM_COMMON_CONFIG_CONFIGURE_CODEC_H_
#define TANDEM_COMMON_CONFIG_CONFIGURE_CODEC_H_

#include "absl/status/status.h"
#include "common/config/worker_assignment.h"
#include "common/config/worker_config.h"

namespace tandem::v1 {
class Configure;
}

namespace tandem::config {

void ToProto(const WorkerConfig& config, const WorkerAssignment& assignment, v1::Configure& out);

// INVALID_ARGUMENT or OUT_OF_RANGE in one line for a setting that is unknown, missing, given twice,
// malformed or not allowed, and for an invalid rank, size or device index.
absl::Status FromProto(const v1::Configure& message, WorkerConfig& config,
                       WorkerAssignment& assignment);

}  // namespace tandem::config

#endif  // TANDEM_COMMON_CONFIG_CONFIGURE_CODEC_H_
