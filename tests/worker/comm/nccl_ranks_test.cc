// Two ranks of the NCCL communicator as real processes, on GPUs or emulated ones. The test itself
// touches no GPU: a process that has must not fork.
#include <gtest/gtest.h>
#include <unistd.h>

#include <array>
#include <cstdio>
#include <functional>
#include <limits>
#include <list>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/base/status.h"
#include "common/base/step_guard.h"
#include "tests/common/transport/fork_child.h"
#include "tests/worker/comm/pipe_rendezvous.h"
#include "tests/worker/comm/rank_device.h"
#include "worker/comm/nccl_communicator.h"
#include "worker/comm/open_communicator.h"

namespace tandem::worker {
namespace {

constexpr int kRanks = 2;
constexpr int kNoGpu = 77;

Deadline Soon() { return Deadline::After(std::chrono::seconds(60)); }

// One rank, joined.
struct Rank {
  std::unique_ptr<kernels::Backend> backend;
  std::unique_ptr<Communicator> comm;

  // Encodes and submits as a step does: nothing may block.
  template <typename Encode>
  absl::Status Run(Encode encode, Deadline deadline = Soon()) {
    TANDEM_ASSIGN_OR_RETURN(const kernels::Ticket ticket, Submit(encode, deadline));
    return backend->Wait(ticket);
  }
  template <typename Encode>
  absl::StatusOr<kernels::Ticket> Submit(Encode encode, Deadline deadline = Soon()) {
    const StepGuard guard;
    backend->BeginEncode(kernels::EncodeMode::kRun);
    encode();
    TANDEM_ASSIGN_OR_RETURN(const kernels::Ticket ticket, backend->Submit(deadline));
    TANDEM_RETURN_IF_ERROR(guard.Check());
    return ticket;
  }
};

absl::Status Join(Rank& self, int rank, int size, Epoch epoch, transport::Rendezvous& rendezvous) {
  TANDEM_ASSIGN_OR_RETURN(self.comm,
                          OpenCommunicator({.rank = rank,
                                            .size = size,
                                            .epoch = epoch,
                                            .rendezvous = rendezvous,
                                            .device_stream = self.backend->device_stream(),
                                            .deadline = Soon()}));
  return self.comm->Join(Soon());
}

absl::StatusOr<Rank> Open(int rank, PipeRendezvous& rendezvous) {
  RegisterNcclCommunicator();
  Rank opened;
  TANDEM_ASSIGN_OR_RETURN(opened.backend, MakeRankBackend(rank, kRanks));
  TANDEM_RETURN_IF_ERROR(Join(opened, rank, kRanks, Epoch{1}, rendezvous));
  return opened;
}

// Runs `body` on two ranks; skips without a GPU.
void OnRanks(const std::function<absl::Status(Rank&)>& body) {
  std::array<int, 2> pipe_ends{};
  ASSERT_EQ(pipe(pipe_ends.data()), 0);
  std::list<transport::ForkChild> children;
  for (int rank = 0; rank < kRanks; ++rank) {
    children.emplace_back([&, rank] {
      if (!HaveDevice()) return kNoGpu;
      PipeRendezvous rendezvous(pipe_ends);
      absl::StatusOr<Rank> opened = Open(rank, rendezvous);
      const absl::Status status = opened.ok() ? body(*opened) : opened.status();
      if (status.ok()) return 0;
      std::fprintf(stderr, "rank %d: %s\n", rank, std::string(status.message()).c_str());
      return 1;
    });
  }
  std::vector<int> codes;
  for (transport::ForkChild& child : children) codes.push_back(child.Wait());
  for (const int end : pipe_ends) close(end);
  if (codes == std::vector<int>(kRanks, kNoGpu)) GTEST_SKIP() << "no GPU";
  EXPECT_EQ(codes, std::vector<int>(kRanks, 0));
}

// Values that sums of two hold exactly.
float Value(int rank, size_t i) { return static_cast<float>((i * 7 + 3) % 1001 * (rank + 1)); }

std::vector<float> Values(int rank, size_t count) {
  std::vector<float> values(count);
  for (size_t i = 0; i < count; ++i) values[i] = Value(rank, i);
  return values;
}

absl::Status Expect(const std::string& what, const std::vector<float>& actual,
                    const std::vector<float>& expected) {
  for (size_t i = 0; i < expected.size(); ++i) {
    if (actual[i] == expected[i]) continue;
    return absl::DataLossError(absl::StrCat(what, " of ", expected.size(), ", at ", i, ": ",
                                            actual[i], ", expected ", expected[i]));
  }
  return absl::OkStatus();
}

// `encode` works on a copy of `in` and on `out_count` floats of NaN; returns these.
template <typename Encode>
absl::StatusOr<std::vector<float>> Collect(Rank& rank, const std::vector<float>& in,
                                           size_t out_count, Encode encode) {
  std::vector<float> out(out_count, std::numeric_limits<float>::quiet_NaN());
  TANDEM_ASSIGN_OR_RETURN(const auto from, rank.backend->Allocate(in.size() * sizeof(float)));
  TANDEM_ASSIGN_OR_RETURN(const auto to, rank.backend->Allocate(out.size() * sizeof(float)));
  auto* const x = reinterpret_cast<float*>(from.data());
  auto* const y = reinterpret_cast<float*>(to.data());
  TANDEM_RETURN_IF_ERROR(rank.Run([&] {
    rank.backend->Upload(x, in.data(), in.size() * sizeof(float));
    rank.backend->Upload(y, out.data(), out.size() * sizeof(float));
    encode(x, y);
    rank.backend->Download(out.data(), y, out.size() * sizeof(float));
  }));
  return out;
}

std::vector<float> BothRanks(size_t count) {
  std::vector<float> both = Values(0, count);
  const std::vector<float> second = Values(1, count);
  both.insert(both.end(), second.begin(), second.end());
  return both;
}

TEST(NcclRanks, CollectivesOfEverySize) {
  OnRanks([](Rank& rank) -> absl::Status {
    const int me = rank.comm->rank();
    for (const size_t count : {size_t{1}, size_t{7}, size_t{4096}, size_t{1} << 20}) {
      const std::vector<float> mine = Values(me, count);
      const size_t bytes = count * sizeof(float);
      TANDEM_ASSIGN_OR_RETURN(
          const auto summed, Collect(rank, mine, count, [&](float* x, float* y) {
            rank.comm->AllReduceSum(x, count);
            rank.backend->Encode(kernels::CopyRowsParams{x, static_cast<uint32_t>(count), 1,
                                                         static_cast<uint32_t>(count), y,
                                                         static_cast<uint32_t>(count)});
          }));
      std::vector<float> sums = Values(0, count);
      for (size_t i = 0; i < count; ++i) sums[i] += Value(1, i);
      TANDEM_RETURN_IF_ERROR(Expect("sum", summed, sums));
      TANDEM_ASSIGN_OR_RETURN(
          const auto all, Collect(rank, mine, kRanks * count,
                                  [&](float* x, float* y) { rank.comm->AllGather(x, bytes, y); }));
      TANDEM_RETURN_IF_ERROR(Expect("all-gather", all, BothRanks(count)));
      TANDEM_ASSIGN_OR_RETURN(const auto gathered,
                              Collect(rank, mine, kRanks * count, [&](float* x, float* y) {
                                rank.comm->Gather(x, bytes, y, 0);
                              }));
      if (me == 0) TANDEM_RETURN_IF_ERROR(Expect("gather", gathered, BothRanks(count)));
      TANDEM_ASSIGN_OR_RETURN(const auto others,
                              Collect(rank, mine, kRanks * count, [&](float* x, float* y) {
                                rank.comm->Gather(me == 0 ? nullptr : x, bytes, y, 0);
                              }));
      const std::vector<float> other(others.begin() + static_cast<ptrdiff_t>(count), others.end());
      if (me == 0) TANDEM_RETURN_IF_ERROR(Expect("gather of others", other, Values(1, count)));
      TANDEM_ASSIGN_OR_RETURN(const auto sent, Collect(rank, mine, count, [&](float* x, float* y) {
                                rank.comm->Broadcast(me == 1 ? x : y, bytes, 1);
                              }));
      if (me == 0) TANDEM_RETURN_IF_ERROR(Expect("broadcast", sent, Values(1, count)));
    }
    return absl::OkStatus();
  });
}

// An all-reduce of `data` as a graph.
absl::StatusOr<std::unique_ptr<kernels::Graph>> CaptureSum(Rank& rank, float* data, size_t count) {
  rank.backend->BeginEncode(kernels::EncodeMode::kCapture);
  rank.comm->AllReduceSum(data, count);
  return rank.backend->graphs()->Finish();
}

TEST(NcclRanks, AGraphHasCollectivesInIt) {
  OnRanks([](Rank& rank) -> absl::Status {
    constexpr size_t kCount = 1000, kReplays = 3;
    TANDEM_ASSIGN_OR_RETURN(const auto buffer, rank.backend->Allocate(kCount * sizeof(float)));
    auto* const data = reinterpret_cast<float*>(buffer.data());
    TANDEM_ASSIGN_OR_RETURN(const auto graph, CaptureSum(rank, data, kCount));
    std::vector<float> values = Values(rank.comm->rank(), kCount);
    TANDEM_RETURN_IF_ERROR(rank.Run([&] {
      rank.backend->Upload(data, values.data(), kCount * sizeof(float));
      for (size_t i = 0; i < kReplays; ++i) rank.backend->graphs()->Replay(*graph);
      rank.backend->Download(values.data(), data, kCount * sizeof(float));
    }));
    // The first sums, the others double.
    std::vector<float> expected(kCount);
    for (size_t i = 0; i < kCount; ++i) expected[i] = 4 * (Value(0, i) + Value(1, i));
    return Expect("replayed sum", values, expected);
  });
}

// As a worker does whose peer is killed while decode graphs are there.
TEST(NcclRanks, APeerLostInAReplayEndsTheStepAndLeavesTheDeviceUsable) {
  OnRanks([](Rank& rank) -> absl::Status {
    constexpr size_t kCount = 1000;
    TANDEM_ASSIGN_OR_RETURN(const auto buffer, rank.backend->Allocate(kCount * sizeof(float)));
    auto* const data = reinterpret_cast<float*>(buffer.data());
    TANDEM_ASSIGN_OR_RETURN(auto graph, CaptureSum(rank, data, kCount));
    const auto replay = [&] { rank.backend->graphs()->Replay(*graph); };
    TANDEM_RETURN_IF_ERROR(rank.Run(replay));
    if (rank.comm->rank() == 1) {
      // In the middle of a replay, and without a word to NCCL.
      TANDEM_RETURN_IF_ERROR(rank.Submit(replay).status());
      _exit(0);
    }

    const int64_t begin = NowMicros();
    const absl::Status ended = rank.Run(replay, Deadline::After(std::chrono::seconds(1)));
    if (ended.ok()) return absl::InternalError("a sum of one rank");
    graph = nullptr;
    rank.comm = nullptr;
    const double seconds = static_cast<double>(NowMicros() - begin) * 1e-6;
    if (seconds > 20) return absl::InternalError(absl::StrCat("took ", seconds, " s to give up"));

    std::array<int, 2> own_pipe{};
    if (pipe(own_pipe.data()) != 0) return absl::InternalError("pipe");
    PipeRendezvous alone(own_pipe);
    TANDEM_RETURN_IF_ERROR(Join(rank, 0, 1, Epoch{2}, alone));
    const std::vector<float> values = Values(0, kCount);
    TANDEM_ASSIGN_OR_RETURN(const auto summed,
                            Collect(rank, values, kCount, [&](float* x, float* y) {
                              rank.comm->AllGather(x, kCount * sizeof(float), y);
                            }));
    return Expect("gathered by the survivor", summed, values);
  });
}

TEST(NcclRanks, ARankThatIsMissingEndsTheStepAtItsDeadline) {
  OnRanks([](Rank& rank) -> absl::Status {
    if (rank.comm->rank() == 1) return absl::OkStatus();  // joins, then leaves
    TANDEM_ASSIGN_OR_RETURN(const auto buffer, rank.backend->Allocate(4096));
    auto* const data = reinterpret_cast<float*>(buffer.data());
    const absl::Status ended = rank.Run([&] { rank.comm->AllReduceSum(data, 1024); },
                                        Deadline::After(std::chrono::seconds(2)));
    return ended.ok() ? absl::InternalError("a sum of one rank") : absl::OkStatus();
  });
}

}  // namespace
}  // namespace tandem::worker
