// The version of the worker protocol: proto/tandem/v1/worker.proto and the step codec together.
// Raised whenever either changes meaning; a coordinator rejects workers of another version
// (docs/worker-protocol.md).
#ifndef TANDEM_COMMON_STEP_PROTOCOL_VERSION_H_
#define TANDEM_COMMON_STEP_PROTOCOL_VERSION_H_

#include <cstdint>

namespace tandem::step {

// The header with the shared token; its value may be any bytes.
inline constexpr char kWorkerTokenHeader[] = "tandem-worker-token-bin";

inline constexpr uint32_t kWorkerProtocolVersion = 20;

}  // namespace tandem::step

#endif  // TANDEM_COMMON_STEP_PROTOCOL_VERSION_H_
