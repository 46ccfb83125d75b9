#include "tests/contract/channel_contract.h"

#include "common/transport/queue_channel.h"
#include "common/transport/shm_channel.h"
#include "gtest/gtest.h"
#include "tests/common/transport/in_process_channel.h"

namespace tandem::transport {
namespace {

constexpr size_t kFrames = 6;

ChannelPair MakeInProcess(size_t frame_bytes) {
  auto [a, b] = MakeInProcessChannel(frame_bytes, kFrames);
  return {.below = nullptr, .a = std::move(a), .b = std::move(b)};
}

// Two ends whose streams are calls of each other's reader.
ChannelPair MakeQueue(size_t frame_bytes) {
  struct Streams {
    QueueChannel* ends[2];
  };
  auto streams = std::make_shared<Streams>();
  const auto make = [&](int peer) {
    auto deliver = [s = streams.get(), peer](std::span<const uint8_t> frame, Deadline deadline) {
      return s->ends[peer]->Deliver(Frame(frame.begin(), frame.end()), deadline);
    };
    auto close = [s = streams.get(), peer](const std::string& reason) {
      s->ends[peer]->PeerClosed(reason);
    };
    return std::make_unique<QueueChannel>(frame_bytes, kFrames, deliver, close);
  };
  auto a = make(1);
  auto b = make(0);
  streams->ends[0] = a.get();
  streams->ends[1] = b.get();
  return {.below = streams, .a = std::move(a), .b = std::move(b)};
}

// Two mappings, as between processes.
ChannelPair MakeShm(size_t frame_bytes) {
  auto made = ShmChannel::Create({.capacity_bytes = frame_bytes}, Epoch{1});
  auto peer = ShmChannel::Attach(made.value().address, Epoch{1});
  return {.below = nullptr, .a = std::move(made.value().channel), .b = std::move(peer.value())};
}

// One mapping, so that a thread checker sees both ends at the same addresses; parks at once.
ChannelPair MakeShmHere(size_t frame_bytes) {
  auto made = ShmChannel::Create({.capacity_bytes = frame_bytes, .spin = {}}, Epoch{1});
  auto peer = made.value().channel->AttachHere();
  return {.below = nullptr, .a = std::move(made.value().channel), .b = std::move(peer.value())};
}

INSTANTIATE_TEST_SUITE_P(Transport, ChannelContract,
                         testing::Values(ChannelFactory{"InProcess", MakeInProcess},
                                         ChannelFactory{"Queue", MakeQueue},
                                         ChannelFactory{"Shm", MakeShm},
                                         ChannelFactory{"ShmOneMapping", MakeShmHere}),
                         ChannelFactoryName);

}  // namespace
}  // namespace tandem::transport
