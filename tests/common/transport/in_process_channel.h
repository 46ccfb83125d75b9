// A channel between two threads of one process: tests, and ranks that live in the coordinator's own
// process.
#ifndef TANDEM_TESTS_COMMON_TRANSPORT_IN_PROCESS_CHANNEL_H_
#define TANDEM_TESTS_COMMON_TRANSPORT_IN_PROCESS_CHANNEL_H_

#include <cstddef>
#include <memory>
#include <utility>

#include "common/transport/channel.h"

namespace tandem::transport {

// The two ends. At most `max_frames` frames wait in each direction. An end that is destroyed closes
// the channel.
std::pair<std::unique_ptr<Channel>, std::unique_ptr<Channel>> MakeInProcessChannel(
    size_t max_frame_bytes, size_t max_frames);

}  // namespace tandem::transport

#endif  // TANDEM_TESTS_COMMON_TRANSPORT_IN_PROCESS_CHANNEL_H_
