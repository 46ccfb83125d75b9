// A host group over channels: a star with rank 0 in the middle, who hears every rank and then
// answers all of them.
//
// Frames are lists of strings (uint32 length, bytes each): the round, the name of the call, then
// values. Rank 0 stops listening a little before its deadline, so that the others learn from it who
// is missing rather than run into deadlines of their own.
#ifndef TANDEM_COMMON_TRANSPORT_CHANNEL_HOST_GROUP_H_
#define TANDEM_COMMON_TRANSPORT_CHANNEL_HOST_GROUP_H_

#include <memory>
#include <vector>

#include "common/transport/channel.h"
#include "common/transport/host_group.h"

namespace tandem::transport {

// Rank 0. `leaves[i]` leads to rank i + 1; none for a group of one.
std::unique_ptr<HostGroup> MakeChannelHostGroupRoot(std::vector<std::unique_ptr<Channel>> leaves);
// Rank `rank` of `size`, 1 or more.
std::unique_ptr<HostGroup> MakeChannelHostGroupLeaf(int rank, int size,
                                                    std::unique_ptr<Channel> root);

}  // namespace tandem::transport

#endif  // TANDEM_COMMON_TRANSPORT_CHANNEL_HOST_GROUP_H_
