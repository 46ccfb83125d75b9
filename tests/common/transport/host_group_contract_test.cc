#include "tests/contract/host_group_contract.h"

#include "common/transport/channel_host_group.h"
#include "common/transport/in_process_channel.h"
#include "common/transport/in_process_host_group.h"
#include "common/transport/shm_channel.h"
#include "gtest/gtest.h"

namespace tandem::transport {
namespace {

using Group = std::vector<std::unique_ptr<HostGroup>>;

template <typename MakePair>
Group MakeStar(int size, MakePair make_pair) {
  Group group(1);
  std::vector<std::unique_ptr<Channel>> leaves;
  for (int rank = 1; rank < size; ++rank) {
    auto [root_end, leaf_end] = make_pair();
    leaves.push_back(std::move(root_end));
    group.push_back(MakeChannelHostGroupLeaf(rank, size, std::move(leaf_end)));
  }
  group[0] = MakeChannelHostGroupRoot(std::move(leaves));
  return group;
}

Group MakeOverQueues(int size) {
  return MakeStar(size, [] { return MakeInProcessChannel(1 << 20, 4); });
}

Group MakeOverShm(int size) {
  return MakeStar(size, [] {
    auto made = ShmChannel::Create({.capacity_bytes = 64 << 10}, Epoch{1}).value();
    std::unique_ptr<Channel> peer = made.channel->AttachHere().value();
    return std::pair<std::unique_ptr<Channel>, std::unique_ptr<Channel>>(std::move(made.channel),
                                                                         std::move(peer));
  });
}

INSTANTIATE_TEST_SUITE_P(Transport, HostGroupContract,
                         testing::Values(HostGroupFactory{"InProcess", MakeInProcessHostGroup},
                                         HostGroupFactory{"Channels", MakeOverQueues},
                                         HostGroupFactory{"ShmChannels", MakeOverShm}),
                         HostGroupFactoryName);

}  // namespace
}  // namespace tandem::transport
