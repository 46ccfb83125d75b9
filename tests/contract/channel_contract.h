// The contract of transport::Channel as tests. Link it and instantiate it for each implementation:
//
//   INSTANTIATE_TEST_SUITE_P(Shm, ChannelContract, testing::Values(ChannelFactory{"shm",
//   MakePair}), ChannelFactoryName);
#ifndef TANDEM_TESTS_CONTRACT_CHANNEL_CONTRACT_H_
#define TANDEM_TESTS_CONTRACT_CHANNEL_CONTRACT_H_

#include <functional>
#include <memory>
#include <ostream>
#include <string>

#include "common/transport/channel.h"
#include "gtest/gtest.h"

namespace tandem::transport {

// Both ends of one channel, and the objects that must outlive them.
struct ChannelPair {
  std::shared_ptr<void> below;
  std::unique_ptr<Channel> a;
  std::unique_ptr<Channel> b;
};

struct ChannelFactory {
  std::string name;
  // Frames of about `frame_bytes` fit, and not many of them at once.
  std::function<ChannelPair(size_t frame_bytes)> make;
};

inline void PrintTo(const ChannelFactory& factory, std::ostream* out) { *out << factory.name; }
inline std::string ChannelFactoryName(const testing::TestParamInfo<ChannelFactory>& test) {
  return test.param.name;
}

class ChannelContract : public testing::TestWithParam<ChannelFactory> {
 protected:
  ChannelPair Make(size_t frame_bytes = 16 << 10) { return GetParam().make(frame_bytes); }
};

}  // namespace tandem::transport

#endif  // TANDEM_TESTS_CONTRACT_CHANNEL_CONTRACT_H_
