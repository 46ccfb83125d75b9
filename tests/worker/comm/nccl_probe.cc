// nccl_probe: what NCCL's calls return and how long they take, on two ranks: of a blocking
// communicator, and of a non-blocking one. Figures, not a check: nccl_ranks_test checks.
//   nccl_probe [--json FILE]
#include <nccl.h>

#include <array>
#include <cstdio>
#include <cstring>
#include <list>
#include <string>

#include "absl/strings/str_cat.h"
#include "common/base/clock.h"
#include "common/base/status.h"
#include "kernels/cuda/check.h"
#include "tests/common/transport/fork_child.h"
#include "tests/kernels/cuda/table/figures.h"
#include "tests/worker/comm/pipe_rendezvous.h"
#include "tests/worker/comm/rank_device.h"
#include "worker/comm/nccl_connection.h"

namespace tandem::worker {
namespace {

using kernels::Json;

constexpr int kRanks = 2;
constexpr size_t kFloats = 4096;  // of one token of a dense model of 8 billion weights
constexpr int kReplays = 20;
constexpr auto kPatience = std::chrono::seconds(20);

double MicrosSince(int64_t begin) { return static_cast<double>(NowMicros() - begin); }

// One communicator on one rank.
class Probe {
 public:
  Probe(int rank, kernels::Backend& backend, PipeRendezvous& pipe)
      : rank_(rank),
        backend_(backend),
        stream_(static_cast<cudaStream_t>(backend.device_stream()->handle())),
        pipe_(pipe) {}

  absl::StatusOr<Json> Run(bool blocking) {
    TANDEM_ASSIGN_OR_RETURN(const kernels::Buffer buffer,
                            backend_.Allocate(kFloats * sizeof(float)));
    data_ = reinterpret_cast<float*>(buffer.data());
    Json facts = {{"blocking", blocking}};
    const int64_t begin = NowMicros();
    TANDEM_RETURN_IF_ERROR(Init(blocking));
    facts["join_us"] = MicrosSince(begin);
    // The second all-reduce finds peers connected.
    for (const char* const which : {"first", "second"}) {
      TANDEM_ASSIGN_OR_RETURN(facts[which], AllReduce());
    }
    if (blocking) {
      TANDEM_ASSIGN_OR_RETURN(facts["replay_us"], ReplayMicros());
    }
    const ncclResult_t finalized = ncclCommFinalize(comm_);
    if (finalized != ncclInProgress) TANDEM_NCCL_RETURN_IF_ERROR(finalized);
    TANDEM_RETURN_IF_ERROR(Settle());
    TANDEM_NCCL_RETURN_IF_ERROR(ncclCommDestroy(comm_));
    return facts;
  }

 private:
  absl::Status Init(bool blocking) {
    ncclUniqueId id;
    if (rank_ == 0) {
      TANDEM_NCCL_RETURN_IF_ERROR(ncclGetUniqueId(&id));
      TANDEM_RETURN_IF_ERROR(pipe_.Put("id", std::string(id.internal, sizeof(id.internal))));
    } else {
      TANDEM_ASSIGN_OR_RETURN(const std::string bytes, pipe_.Get("id", Deadline::After(kPatience)));
      std::memcpy(id.internal, bytes.data(), sizeof(id.internal));
    }
    ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
    config.blocking = blocking ? 1 : 0;
    const ncclResult_t begun = ncclCommInitRankConfig(&comm_, kRanks, id, rank_, &config);
    if (begun != ncclInProgress) TANDEM_NCCL_RETURN_IF_ERROR(begun);
    return Settle();
  }

  // Until the last call is no longer in progress.
  absl::Status Settle() {
    const Deadline deadline = Deadline::After(kPatience);
    ncclResult_t state = ncclInProgress;
    while (state == ncclInProgress) {
      TANDEM_NCCL_RETURN_IF_ERROR(ncclCommGetAsyncError(comm_, &state));
      if (deadline.Passed()) return absl::DeadlineExceededError("NCCL stays in progress");
    }
    return NcclStatus(state, "asynchronous error", __FILE__, __LINE__);
  }

  absl::StatusOr<Json> AllReduce() {
    const int64_t begin = NowMicros();
    const ncclResult_t result =
        ncclAllReduce(data_, data_, kFloats, ncclFloat32, ncclSum, comm_, stream_);
    const double call = MicrosSince(begin);
    if (result != ncclInProgress) TANDEM_NCCL_RETURN_IF_ERROR(result);
    TANDEM_RETURN_IF_ERROR(Settle());
    const double settled = MicrosSince(begin);
    TANDEM_CUDA_RETURN_IF_ERROR(cudaStreamSynchronize(stream_));
    return Json{{"result", ncclGetErrorString(result)},
                {"call_us", call},
                {"settled_us", settled},
                {"done_us", MicrosSince(begin)}};
  }

  // Of one all-reduce in a graph.
  absl::StatusOr<double> ReplayMicros() {
    backend_.BeginEncode(kernels::EncodeMode::kCapture);
    TANDEM_NCCL_RETURN_IF_ERROR(
        ncclAllReduce(data_, data_, kFloats, ncclFloat32, ncclSum, comm_, stream_));
    TANDEM_ASSIGN_OR_RETURN(const auto graph, backend_.graphs()->Finish());
    const int64_t begin = NowMicros();
    for (int i = 0; i < kReplays; ++i) {
      backend_.BeginEncode(kernels::EncodeMode::kRun);
      backend_.graphs()->Replay(*graph);
      TANDEM_RETURN_IF_ERROR(backend_.SubmitAndWait(Deadline::After(kPatience)));
    }
    return MicrosSince(begin) / kReplays;
  }

  const int rank_;
  kernels::Backend& backend_;
  const cudaStream_t stream_;
  PipeRendezvous& pipe_;
  ncclComm_t comm_ = nullptr;
  float* data_ = nullptr;
};

void Print(const Json& facts) {
  std::printf("%s: join %.0f us", facts["blocking"] ? "blocking" : "non-blocking",
              facts["join_us"].get<double>());
  for (const char* const which : {"first", "second"}) {
    const Json& one = facts[which];
    std::printf("; %s all-reduce '%s' after %.0f us, settled %.0f, done %.0f", which,
                one["result"].get<std::string>().c_str(), one["call_us"].get<double>(),
                one["settled_us"].get<double>(), one["done_us"].get<double>());
  }
  if (facts.contains("replay_us")) {
    std::printf("; a replay %.0f us", facts["replay_us"].get<double>());
  }
  std::printf("\n");
  std::fflush(stdout);
}

absl::Status ProbeRank(int rank, PipeRendezvous& pipe, const std::string& json) {
  if (!HaveDevice()) return absl::UnavailableError("no GPU");
  TANDEM_ASSIGN_OR_RETURN(const auto backend, MakeRankBackend(rank, kRanks));
  kernels::Figures figures(rank == 0 ? json : "");
  for (const bool blocking : {true, false}) {
    TANDEM_ASSIGN_OR_RETURN(const Json facts, Probe(rank, *backend, pipe).Run(blocking));
    if (rank != 0) continue;
    Print(facts);
    figures.Append("communicators", facts);
  }
  return absl::OkStatus();
}

int RunRanks(const std::string& json) {
  std::array<int, 2> ends{};
  if (pipe(ends.data()) != 0) return 1;
  std::list<transport::ForkChild> ranks;
  for (int rank = 0; rank < kRanks; ++rank) {
    ranks.emplace_back([&, rank] {
      PipeRendezvous rendezvous(ends);
      const absl::Status status = ProbeRank(rank, rendezvous, json);
      if (status.ok()) return 0;
      std::fprintf(stderr, "nccl_probe: rank %d: %s\n", rank,
                   std::string(status.message()).c_str());
      return 1;
    });
  }
  int failed = 0;
  for (transport::ForkChild& rank : ranks) failed |= rank.Wait();
  return failed == 0 ? 0 : 1;
}

}  // namespace
}  // namespace tandem::worker

int main(int argc, char** argv) {
  const bool has_json = argc == 3 && std::strcmp(argv[1], "--json") == 0;
  return tandem::worker::RunRanks(has_json ? argv[2] : "");
}
