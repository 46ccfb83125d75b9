// How long a step's frame takes to every rank over shared memory: from before the first Send to the
// last rank's Receive, by the clock that processes of a host share.
//   bazel run -c opt //tests/common/transport:dispatch_bench
// Arguments: ranks, bytes of a frame, and microseconds between steps. A rank that waits for longer
// than ShmChannelOptions::spin has stopped polling, and the system has to wake its process.
#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstring>
#include <list>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "benchmark/benchmark.h"
#include "common/transport/shm_channel.h"
#include "tests/common/transport/fork_child.h"

namespace tandem::transport {
namespace {

constexpr Epoch kEpoch{1};
constexpr auto kTimeout = std::chrono::seconds(10);

int64_t Now() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

// Answers each frame with the time at which it came.
int Rank(const std::string& address) {
  auto channel = ShmChannel::Attach(address, kEpoch);
  if (!channel.ok()) return 1;
  while ((*channel)->Receive(Deadline::After(kTimeout)).ok()) {
    const int64_t now = Now();
    uint8_t answer[sizeof(now)];
    std::memcpy(answer, &now, sizeof(now));
    if (!(*channel)->Send(answer, Deadline::After(kTimeout)).ok()) return 1;
  }
  return 0;
}

// Sends `frame` to all; the time, in seconds, until the last has it. Negative: one has failed.
double Dispatch(const std::vector<std::unique_ptr<ShmChannel>>& ranks, const Frame& frame) {
  const int64_t start = Now();
  for (const auto& rank : ranks) {
    if (!rank->Send(frame, Deadline::After(kTimeout)).ok()) return -1;
  }
  int64_t last = start;
  for (const auto& rank : ranks) {
    const absl::StatusOr<Frame> answer = rank->Receive(Deadline::After(kTimeout));
    int64_t at = 0;
    if (!answer.ok() || answer->size() != sizeof(at)) return -1;
    std::memcpy(&at, answer->data(), sizeof(at));
    last = std::max(last, at);
  }
  return static_cast<double>(last - start) * 1e-9;
}

void BM_Dispatch(benchmark::State& state) {
  std::vector<std::unique_ptr<ShmChannel>> ranks;
  std::list<ForkChild> processes;
  for (int64_t rank = 0; rank < state.range(0); ++rank) {
    ShmChannel::Created made = ShmChannel::Create({}, kEpoch).value();
    processes.emplace_back([address = made.address] { return Rank(address); });
    ranks.push_back(std::move(made.channel));
  }
  const Frame frame(static_cast<size_t>(state.range(1)));
  Dispatch(ranks, frame);  // until all are there
  for (auto _ : state) {
    std::this_thread::sleep_for(std::chrono::microseconds(state.range(2)));
    const double seconds = Dispatch(ranks, frame);
    if (seconds < 0) return state.SkipWithError("a rank has failed");
    state.SetIterationTime(seconds);
  }
  for (const auto& rank : ranks) rank->Close("the benchmark ends");
}

BENCHMARK(BM_Dispatch)
    ->ArgNames({"ranks", "bytes", "pause_us"})
    ->ArgsProduct({{1, 2}, {256, 8 << 10}, {0, 2000}})
    ->UseManualTime();

}  // namespace
}  // namespace tandem::transport
