#include <nccl.h>
#include <unistd.h>

#include <chrono>
#include <cstring>
#include <memory>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

#include "tools/cuda_emulation/nccl_fault.h"
#include "tools/cuda_emulation/nccl_segment.h"
#include "tools/cuda_emulation/runtime.h"

namespace {

using Clock = std::chrono::steady_clock;
using tandem::emulation::NcclSegment;

// What a non-blocking call takes at least.
constexpr auto kInProgress = std::chrono::microseconds(100);
constexpr auto kPoll = std::chrono::microseconds(50);

// The fault of this process.
class Fault {
 public:
  void Set(const tandem::emulation::NcclFault& fault) {
    const std::lock_guard lock(mutex_);
    fault_ = fault;
  }
  // The answer to a poll of `rank`.
  ncclResult_t Poll(int rank) {
    const std::lock_guard lock(mutex_);
    if (rank != fault_.rank) return ncclSuccess;
    return fault_.polls-- > 0 ? ncclSuccess : fault_.result;
  }

 private:
  std::mutex mutex_;
  tandem::emulation::NcclFault fault_;
};

Fault& TheFault() {
  static Fault fault;
  return fault;
}

enum Kind { kAllReduce, kAllGather, kBroadcast, kSendReceive };

// What outlives a communicator: work on streams, and calls of other threads that it ends.
struct State {
  State(const std::string& path, int own_rank, int ranks)
      : segment(path), rank(own_rank), size(ranks) {}

  NcclSegment segment;
  const int rank;
  const int size;
  std::atomic<bool> aborted{false};
  std::atomic<uint64_t> round{0};  // collectives that this rank has executed
  std::atomic<int> in_graphs{0};   // collectives that graphs hold
  std::atomic<int64_t> busy_until{0};
  std::atomic<bool> failed{false};  // as ncclCommGetAsyncError has said

  bool AllRanks(auto&& has) {
    for (int each = 0; each < size; ++each) {
      if (!has(segment.line(each))) return false;
    }
    return true;
  }
  bool Connected() {
    return AllRanks([this](auto& line) {
      for (int kind = 0; kind < tandem::emulation::kCollectiveKinds; ++kind) {
        if (segment.line(rank).connected[kind] && !line.connected[kind]) return false;
      }
      return true;
    });
  }
};

// Counts one collective that a graph holds; released with the graph.
struct GraphReference {
  explicit GraphReference(std::shared_ptr<State> counted) : state(std::move(counted)) {
    ++state->in_graphs;
  }
  ~GraphReference() { --state->in_graphs; }
  const std::shared_ptr<State> state;
};

struct Part {
  void* to = nullptr;
  int from = 0;
};

// One collective, as work on a stream: sends when the peers have read the last round's data, and
// receives when all have sent. Asked again until it is done.
struct Collective {
  Kind kind = kAllReduce;
  std::shared_ptr<State> state{};
  const void* send = nullptr;
  size_t bytes = 0;
  std::vector<Part> parts{};  // where whose bytes go; all-reduce: the sum, to the first
  std::shared_ptr<GraphReference> reference{};
  bool sent = false;

  cudaError_t operator()() {
    if (state->aborted) return Finish();
    if (state->failed) return cudaErrorNotReady;
    const uint64_t round = state->round;
    auto& own = state->segment.line(state->rank);
    if (!sent) {
      if (!state->AllRanks([&](auto& line) { return line.read >= round; })) {
        return cudaErrorNotReady;
      }
      if (send != nullptr && bytes > 0) {
        std::memcpy(state->segment.slot(state->rank), send, bytes);
      }
      own.sent = round + 1;
      sent = true;
    }
    if (!state->AllRanks([&](auto& line) { return line.sent > round; })) return cudaErrorNotReady;
    Receive();
    own.read = round + 1;
    state->round = round + 1;
    return Finish();
  }

  cudaError_t Finish() {
    sent = false;  // a graph runs it again
    return cudaSuccess;
  }

  void Receive() {
    if (bytes == 0) return;
    for (const Part& part : parts) std::memcpy(part.to, state->segment.slot(part.from), bytes);
    if (kind != kAllReduce) return;
    auto* const sums = static_cast<float*>(parts[0].to);
    for (int rank = 1; rank < state->size; ++rank) {
      const auto* const values = reinterpret_cast<const float*>(state->segment.slot(rank));
      for (size_t i = 0; i < bytes / sizeof(float); ++i) sums[i] += values[i];
    }
  }
};

size_t BytesOf(ncclDataType_t type, size_t count) {
  return type == ncclFloat32 ? count * sizeof(float) : count;
}

// Sends and receives between ncclGroupStart and ncclGroupEnd.
thread_local struct Group {
  bool open = false;
  EmulatedComm* comm = nullptr;
  cudaStream_t stream = nullptr;
  Collective collective{};
} group;

}  // namespace

struct EmulatedComm {
  std::shared_ptr<State> state;
  bool blocking = true;
};

namespace {

ncclResult_t Enqueue(EmulatedComm& comm, cudaStream_t stream, Collective collective) {
  // The communicator itself may be aborted, and gone, while this waits.
  const std::shared_ptr<State> state = comm.state;
  const bool blocking = comm.blocking;
  if (collective.bytes > tandem::emulation::kSlotBytes) return ncclInvalidArgument;
  state->segment.line(state->rank).connected[collective.kind] = 1;
  while (blocking && !state->Connected()) {
    if (state->aborted) return ncclInternalError;
    std::this_thread::sleep_for(kPoll);
  }
  collective.state = state;
  cudaStreamCaptureStatus capturing = cudaStreamCaptureStatusNone;
  if (cudaStreamIsCapturing(stream, &capturing) != cudaSuccess) return ncclUnhandledCudaError;
  if (capturing == cudaStreamCaptureStatusActive) {
    collective.reference = std::make_shared<GraphReference>(state);
  }
  if (tandem::emulation::Enqueue(stream, std::move(collective)) != cudaSuccess) {
    return ncclUnhandledCudaError;
  }
  if (blocking) return ncclSuccess;
  state->busy_until = (Clock::now() + kInProgress).time_since_epoch().count();
  return ncclInProgress;
}

void WaitForGraphs(State& state) {
  while (state.in_graphs > 0) std::this_thread::sleep_for(kPoll);
}

}  // namespace

namespace tandem::emulation {

void FailNcclLater(const NcclFault& fault) { TheFault().Set(fault); }

}  // namespace tandem::emulation

const char* ncclGetErrorString(ncclResult_t result) {
  switch (result) {
    case ncclSuccess:
      return "no error";
    case ncclUnhandledCudaError:
      return "unhandled cuda error";
    case ncclSystemError:
      return "unhandled system error";
    case ncclInternalError:
      return "internal error";
    case ncclInvalidArgument:
      return "invalid argument";
    case ncclInvalidUsage:
      return "invalid usage";
    case ncclRemoteError:
      return "remote process exited or there was a network error";
    case ncclInProgress:
      return "NCCL operation in progress";
  }
  return "unknown result code";
}

const char* ncclGetLastError(ncclComm_t) { return ""; }

ncclResult_t ncclGetUniqueId(ncclUniqueId* id) {
  *id = {};
  const std::string path = NcclSegment::Create();
  path.copy(id->internal, sizeof(id->internal) - 1);
  return ncclSuccess;
}

ncclResult_t ncclCommInitRankConfig(ncclComm_t* comm, int size, ncclUniqueId id, int rank,
                                    ncclConfig_t* config) {
  if (size > tandem::emulation::kMaxRanks || rank >= size) return ncclInvalidArgument;
  auto made = std::make_unique<EmulatedComm>();
  made->state = std::make_shared<State>(id.internal, rank, size);
  made->blocking = config->blocking != 0;
  made->state->segment.line(rank).process = getpid();
  if (made->blocking) {
    // Nothing ends it: there is no communicator yet that another thread could abort.
    while (!made->state->AllRanks([](auto& line) { return line.process != 0; })) {
      std::this_thread::sleep_for(kPoll);
    }
  }
  *comm = made.release();
  return (*comm)->blocking ? ncclSuccess : ncclInProgress;
}

ncclResult_t ncclCommGetAsyncError(ncclComm_t comm, ncclResult_t* state) {
  State& of = *comm->state;
  *state = TheFault().Poll(of.rank);
  if (*state != ncclSuccess) {
    of.failed = true;
    return ncclSuccess;
  }
  const bool busy = Clock::now().time_since_epoch().count() < of.busy_until;
  const bool joined = of.AllRanks([](auto& line) { return line.process != 0; });
  *state = busy || !joined || !of.Connected() ? ncclInProgress : ncclSuccess;
  return ncclSuccess;
}

ncclResult_t ncclCommFinalize(ncclComm_t comm) {
  return comm->blocking ? ncclSuccess : ncclInProgress;
}

ncclResult_t ncclCommDestroy(ncclComm_t comm) {
  WaitForGraphs(*comm->state);
  delete comm;
  return ncclSuccess;
}

ncclResult_t ncclCommAbort(ncclComm_t comm) {
  comm->state->aborted = true;
  return ncclCommDestroy(comm);
}

ncclResult_t ncclMemAlloc(void** data, size_t bytes) {
  return cudaMalloc(data, bytes) == cudaSuccess ? ncclSuccess : ncclUnhandledCudaError;
}

ncclResult_t ncclMemFree(void* data) {
  return cudaFree(data) == cudaSuccess ? ncclSuccess : ncclUnhandledCudaError;
}

ncclResult_t ncclAllReduce(const void* send, void* recv, size_t count, ncclDataType_t type,
                           ncclRedOp_t, ncclComm_t comm, cudaStream_t stream) {
  if (type != ncclFloat32) return ncclInvalidArgument;
  return Enqueue(*comm, stream,
                 {.kind = kAllReduce,
                  .send = send,
                  .bytes = BytesOf(type, count),
                  .parts = {{.to = recv, .from = 0}}});
}

ncclResult_t ncclAllGather(const void* send, void* recv, size_t count, ncclDataType_t type,
                           ncclComm_t comm, cudaStream_t stream) {
  Collective collective{.kind = kAllGather, .send = send, .bytes = BytesOf(type, count)};
  for (int rank = 0; rank < comm->state->size; ++rank) {
    auto* const to = static_cast<std::byte*>(recv) + static_cast<size_t>(rank) * collective.bytes;
    collective.parts.push_back({.to = to, .from = rank});
  }
  return Enqueue(*comm, stream, std::move(collective));
}

ncclResult_t ncclBroadcast(const void* send, void* recv, size_t count, ncclDataType_t type,
                           int root, ncclComm_t comm, cudaStream_t stream) {
  return Enqueue(*comm, stream,
                 {.kind = kBroadcast,
                  .send = send,
                  .bytes = BytesOf(type, count),
                  .parts = {{.to = recv, .from = root}}});
}

ncclResult_t ncclGroupStart() {
  if (group.open) return ncclInvalidUsage;
  group = {.open = true, .collective = {.kind = kSendReceive}};
  return ncclSuccess;
}

ncclResult_t ncclGroupEnd() {
  if (!group.open) return ncclInvalidUsage;
  group.open = false;
  if (group.comm == nullptr) return ncclSuccess;
  return Enqueue(*group.comm, group.stream, std::move(group.collective));
}

ncclResult_t ncclSend(const void* send, size_t count, ncclDataType_t type, int, ncclComm_t comm,
                      cudaStream_t stream) {
  if (!group.open || group.collective.send != nullptr) return ncclInvalidUsage;
  group.comm = comm;
  group.stream = stream;
  group.collective.send = send;
  group.collective.bytes = BytesOf(type, count);
  return ncclSuccess;
}

ncclResult_t ncclRecv(void* recv, size_t count, ncclDataType_t type, int peer, ncclComm_t comm,
                      cudaStream_t stream) {
  if (!group.open) return ncclInvalidUsage;
  group.comm = comm;
  group.stream = stream;
  group.collective.bytes = BytesOf(type, count);  // a rank may only receive
  group.collective.parts.push_back({.to = recv, .from = peer});
  return ncclSuccess;
}
