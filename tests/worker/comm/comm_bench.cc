// All-reduce between processes over shared memory. Run on idle cores:
//   bazel run -c opt //tests/worker/comm:comm_bench
// Arguments: ranks, bytes. Rank 0 is this process, the others are forked.
#include <list>
#include <string>
#include <vector>

#include "benchmark/benchmark.h"
#include "tests/common/transport/fork_child.h"
#include "tests/contract/host_streams.h"
#include "worker/comm/shm_communicator.h"

namespace tandem::worker {
namespace {

constexpr Epoch kEpoch{1};

// Reduces until rank 0 leaves.
int Peer(const std::string& address, int rank, int size, size_t count) {
  auto group = ShmGroup::Open(address, rank, size, kEpoch, {});
  if (!group.ok()) return 1;
  kernels::InlineStream stream;
  ShmCommunicator comm(std::move(*group), stream);
  std::vector<float> data(count, 0.0f);
  while (stream.status().ok()) comm.AllReduceSum(data.data(), count);
  return 0;
}

void BM_AllReduce(benchmark::State& state) {
  const int size = static_cast<int>(state.range(0));
  const size_t count = state.range(1) / sizeof(float);
  auto group = ShmGroup::Create(size, kEpoch, {}).value();
  const std::string address = group->address();
  std::list<transport::ForkChild> peers;
  for (int rank = 1; rank < size; ++rank) {
    peers.emplace_back([=] { return Peer(address, rank, size, count); });
  }
  kernels::InlineStream stream;
  ShmCommunicator comm(std::move(group), stream);
  std::vector<float> data(count, 0.0f);
  comm.AllReduceSum(data.data(), count);  // until all are there
  for (auto _ : state) comm.AllReduceSum(data.data(), count);
  if (!stream.status().ok()) state.SkipWithError(std::string(stream.status().message()).c_str());
  state.SetBytesProcessed(state.iterations() * state.range(1));
}

BENCHMARK(BM_AllReduce)
    ->ArgNames({"ranks", "bytes"})
    ->ArgsProduct({{2}, {64, 4 << 10, 64 << 10, 256 << 10, 1 << 20, 4 << 20}})
    ->ArgsProduct({{3, 4}, {4 << 10, 1 << 20}})
    ->UseRealTime();

}  // namespace
}  // namespace tandem::worker

BENCHMARK_MAIN();
