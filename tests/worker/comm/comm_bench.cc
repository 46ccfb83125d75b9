// All-reduce between processes of this host, over shared memory and over TCP. Run on idle cores:
//   bazel run -c opt //tests/worker/comm:comm_bench
// Arguments: TCP, ranks, bytes. Rank 0 is this process, the others are forked.
#include <filesystem>
#include <list>
#include <string>
#include <vector>

#include "benchmark/benchmark.h"
#include "common/base/status.h"
#include "tests/common/transport/file_rendezvous.h"
#include "tests/common/transport/fork_child.h"
#include "tests/contract/host_streams.h"
#include "worker/comm/open_communicator.h"

namespace tandem::worker {
namespace {

// For the rendezvous of one group.
std::string NewFolder() {
  std::string folder = std::filesystem::temp_directory_path() / "comm_bench.XXXXXX";
  if (mkdtemp(folder.data()) == nullptr) std::abort();
  return folder;
}

struct Group {
  bool over_tcp = false;
  int size = 2;
  std::string folder = NewFolder();

  absl::StatusOr<std::unique_ptr<Communicator>> Join(int rank, kernels::HostStream& stream) const {
    const auto deadline = Deadline::After(std::chrono::seconds(60));
    transport::FileRendezvous rendezvous(folder);
    TANDEM_ASSIGN_OR_RETURN(auto comm, OpenCommunicator({.rank = rank,
                                                         .size = size,
                                                         .epoch = Epoch{1},
                                                         .rendezvous = rendezvous,
                                                         .host_stream = &stream,
                                                         .over_tcp = over_tcp,
                                                         .listen = "127.0.0.1:0",
                                                         .deadline = deadline}));
    TANDEM_RETURN_IF_ERROR(comm->Join(deadline));
    return comm;
  }
};

// Reduces until rank 0 leaves.
int Peer(const Group& group, int rank, size_t count) {
  kernels::InlineStream stream;
  const auto comm = group.Join(rank, stream);
  if (!comm.ok()) return 1;
  std::vector<float> data(count, 0.0f);
  while (stream.status().ok()) (*comm)->AllReduceSum(data.data(), count);
  return 0;
}

void BM_AllReduce(benchmark::State& state) {
  const Group group{.over_tcp = state.range(0) != 0, .size = static_cast<int>(state.range(1))};
  const size_t count = state.range(2) / sizeof(float);
  std::list<transport::ForkChild> peers;
  for (int rank = 1; rank < group.size; ++rank) {
    peers.emplace_back([=] { return Peer(group, rank, count); });
  }
  kernels::InlineStream stream;
  auto comm = group.Join(0, stream);
  if (!comm.ok()) return state.SkipWithError(std::string(comm.status().message()).c_str());
  std::vector<float> data(count, 0.0f);
  (*comm)->AllReduceSum(data.data(), count);  // until all are there
  for (auto _ : state) (*comm)->AllReduceSum(data.data(), count);
  if (!stream.status().ok()) state.SkipWithError(std::string(stream.status().message()).c_str());
  state.SetBytesProcessed(state.iterations() * state.range(2));
  comm->reset();
  std::filesystem::remove_all(group.folder);
}

BENCHMARK(BM_AllReduce)
    ->ArgNames({"tcp", "ranks", "bytes"})
    ->ArgsProduct({{0, 1}, {2}, {64, 4 << 10, 64 << 10, 256 << 10, 1 << 20, 4 << 20}})
    ->ArgsProduct({{0, 1}, {3, 4}, {4 << 10, 1 << 20}})
    ->UseRealTime();

}  // namespace
}  // namespace tandem::worker

BENCHMARK_MAIN();
