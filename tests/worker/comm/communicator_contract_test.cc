#include "tests/contract/communicator_contract.h"

#include "gtest/gtest.h"
#include "tests/common/transport/memory_rendezvous.h"
#include "tests/worker/comm/local_communicator.h"
#include "worker/comm/shm_communicator.h"
#include "worker/comm/tcp/tcp_communicator.h"

namespace tandem::worker {
namespace {

using Communicators = std::vector<std::unique_ptr<Communicator>>;
using Streams = std::vector<kernels::HostStream*>;

// `open` gives rank r's view of the group that rank 0 made.
template <typename Open>
Communicators MakeShm(const Streams& streams, const ShmGroupOptions& options, Open open) {
  const int size = static_cast<int>(streams.size());
  std::unique_ptr<ShmGroup> first = ShmGroup::Create(size, Epoch{1}, options).value();
  std::vector<std::unique_ptr<ShmGroup>> groups;
  for (int rank = 1; rank < size; ++rank) groups.push_back(open(*first, rank));
  groups.insert(groups.begin(), std::move(first));
  Communicators communicators;
  for (int rank = 0; rank < size; ++rank) {
    communicators.push_back(
        std::make_unique<ShmCommunicator>(std::move(groups[rank]), *streams[rank]));
  }
  return communicators;
}

// A mapping per rank, as between processes, and the chunks that serve.
Communicators MakeShmMapped(const Streams& streams) {
  const ShmGroupOptions options;
  return MakeShm(streams, options, [&](const ShmGroup& first, int rank) {
    return ShmGroup::Open(first.address(), rank, first.size(), Epoch{1}, options).value();
  });
}

// One mapping, so that a thread checker sees all ranks at the same addresses; small chunks; parks
// at once.
Communicators MakeShmOneMapping(const Streams& streams) {
  const ShmGroupOptions options{.buffer_bytes = 4096, .spin = {}, .yield = {}};
  return MakeShm(streams, options,
                 [](const ShmGroup& first, int rank) { return first.OpenHere(rank).value(); });
}

// One mapping with chunks that are large enough to be summed in parts.
Communicators MakeShmInParts(const Streams& streams) {
  return MakeShm(streams, {},
                 [](const ShmGroup& first, int rank) { return first.OpenHere(rank).value(); });
}

// Connected through this machine's loopback, each by its port.
Communicators MakeTcp(const Streams& streams, const TcpCommunicator::Options& options) {
  transport::MemoryRendezvous rendezvous;
  Communicators communicators;
  for (kernels::HostStream* const stream : streams) {
    auto group = TcpGroup::Open({.rank = static_cast<int>(communicators.size()),
                                 .size = static_cast<int>(streams.size()),
                                 .epoch = Epoch{1},
                                 .rendezvous = rendezvous,
                                 .listen = "127.0.0.1:0",
                                 .deadline = Deadline::After(std::chrono::seconds(60))});
    communicators.push_back(
        std::make_unique<TcpCommunicator>(std::move(group).value(), *stream, options));
  }
  return communicators;
}

CommunicatorFactory OnTcp(const char* name, const TcpCommunicator::Options& options) {
  const auto make = [options](const Streams& streams) { return MakeTcp(streams, options); };
  return {.name = name,
          .make = [make](int size) { return OnHostStreams(size, make); },
          .aborts_end_joins_of_others = false};
}

template <typename Make>
CommunicatorFactory OnHost(const char* name, Make make) {
  return {.name = name, .make = [make](int size) { return OnHostStreams(size, make); }};
}

INSTANTIATE_TEST_SUITE_P(
    Comm, CommunicatorContract,
    testing::Values(OnHost("Local", MakeLocalCommunicators), OnHost("Shm", MakeShmMapped),
                    OnHost("ShmSmallChunksParked", MakeShmOneMapping),
                    OnHost("ShmOneMapping", MakeShmInParts), OnTcp("Tcp", {}),
                    OnTcp("TcpSmallChunks", {.chunk_bytes = 4096, .parts_bytes = 512})),
    CommunicatorFactoryName);

}  // namespace
}  // namespace tandem::worker
