#include "worker/comm/nccl_communicator.h"

#include <nccl.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/check.h"
#include "common/base/log.h"
#include "common/base/status.h"
#include "common/base/step_guard.h"
#include "worker/comm/async_life.h"
#include "worker/comm/collective.h"
#include "worker/comm/open_communicator.h"

// Returns from the enclosing function when a call of NCCL fails; a call in progress has not failed.
#define TANDEM_NCCL_RETURN_IF_ERROR(expr) \
  TANDEM_RETURN_IF_ERROR(NcclStatus((expr), #expr, __FILE__, __LINE__))

namespace tandem::worker {
namespace {

// How long to wait for a collective that NCCL still has to connect; Join leaves none.
constexpr auto kIssueTimeout = std::chrono::seconds(60);
constexpr auto kFinalizeTimeout = std::chrono::seconds(5);
// Of each rank in Join's collectives.
constexpr size_t kWarmUpFloats = 16;

absl::Status NcclStatus(ncclResult_t result, const char* expression, const char* file, int line) {
  if (result == ncclSuccess || result == ncclInProgress) return absl::OkStatus();
  std::string message =
      absl::StrCat(file, ":", line, ": ", expression, ": ", ncclGetErrorString(result));
  if (const char* last = ncclGetLastError(nullptr); last != nullptr && *last != '\0') {
    absl::StrAppend(&message, ": ", last);
  }
  std::replace(message.begin(), message.end(), '\n', ' ');
  // The loss of a peer is not our bug.
  return result == ncclRemoteError ? absl::UnavailableError(message) : absl::InternalError(message);
}

absl::StatusOr<ncclUniqueId> ExchangeId(const CommunicatorParts& parts) {
  const std::string key = absl::StrCat("nccl/", parts.epoch.value);
  ncclUniqueId id;
  if (parts.rank == 0) {
    TANDEM_NCCL_RETURN_IF_ERROR(ncclGetUniqueId(&id));
    TANDEM_RETURN_IF_ERROR(
        parts.rendezvous.Put(key, std::string(id.internal, sizeof(id.internal))));
    return id;
  }
  TANDEM_ASSIGN_OR_RETURN(const std::string bytes, parts.rendezvous.Get(key, parts.deadline));
  if (bytes.size() != sizeof(id.internal)) {
    return absl::InternalError(absl::StrCat("an NCCL id of ", bytes.size(), " bytes, needed ",
                                            sizeof(id.internal), ": another NCCL on rank 0?"));
  }
  std::memcpy(id.internal, bytes.data(), bytes.size());
  return id;
}

class NcclCommunicator final : public Communicator, private AsyncHandle {
 public:
  NcclCommunicator(const CommunicatorParts& parts, const ncclUniqueId& id)
      : rank_(parts.rank),
        size_(parts.size),
        id_(id),
        stream_(*parts.device_stream),
        life_(*this, absl::StrCat("rank ", parts.rank, " of ", parts.size)) {}

  ~NcclCommunicator() override {
    stream_.SetWatch(nullptr);
    const absl::Status left = Leave();
    if (!left.ok()) {
      TANDEM_LOG(kWarning) << left.message();
      life_.Cancel(left);
    }
    if (warm_up_ != nullptr) (void)ncclMemFree(warm_up_);
  }

  int rank() const override { return rank_; }
  int size() const override { return size_; }

  absl::Status Join(Deadline deadline) override {
    const absl::Status joined = Connect(deadline);
    if (!joined.ok()) life_.Cancel(joined);
    return joined;
  }

  void AllReduceSum(float* data, size_t count) override {
    Enqueue({CollectiveKind::kAllReduce, 0, count * sizeof(float)},
            [&] { return IssueAllReduce(data, count); });
  }
  void Gather(const void* send, size_t bytes, void* recv, int root) override {
    TANDEM_CHECK(root >= 0 && root < size_) << "root " << root << " of " << size_;
    Enqueue({CollectiveKind::kGather, static_cast<uint32_t>(root), bytes},
            [&] { return IssueGather(send, bytes, recv, root); });
  }
  void AllGather(const void* send, size_t bytes, void* recv) override {
    Enqueue({CollectiveKind::kAllGather, 0, bytes},
            [&] { return IssueAllGather(send, bytes, recv); });
  }
  void Broadcast(void* data, size_t bytes, int root) override {
    TANDEM_CHECK(root >= 0 && root < size_) << "root " << root << " of " << size_;
    Enqueue({CollectiveKind::kBroadcast, static_cast<uint32_t>(root), bytes},
            [&] { return IssueBroadcast(data, bytes, root); });
  }

  void Abort(const absl::Status& reason) override { life_.Abort(reason); }

 private:
  cudaStream_t stream() { return static_cast<cudaStream_t>(stream_.handle()); }

  absl::Status Connect(Deadline deadline) {
    TANDEM_RETURN_IF_ERROR(life_.Check());
    ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
    config.blocking = 0;
    TANDEM_NCCL_RETURN_IF_ERROR(ncclCommInitRankConfig(&comm_, size_, id_, rank_, &config));
    TANDEM_RETURN_IF_ERROR(life_.Await("join", deadline));
    stream_.SetWatch(&life_);
    return WarmUp(deadline);
  }

  absl::StatusOr<bool> Done() override {
    if (comm_ == nullptr) return true;  // nothing was started
    ncclResult_t state = ncclSuccess;
    TANDEM_NCCL_RETURN_IF_ERROR(ncclCommGetAsyncError(comm_, &state));
    if (state == ncclInProgress) return false;
    TANDEM_RETURN_IF_ERROR(NcclStatus(state, "asynchronous error", __FILE__, __LINE__));
    return true;
  }
  // The handle's Abort, on the backend's thread; the communicator's takes a reason, on any thread.
  void Abort() override {
    if (comm_ != nullptr) (void)ncclCommAbort(std::exchange(comm_, nullptr));
  }

  // Finalizes the communicator; aborts it if the peers do not follow.
  absl::Status Leave() {
    if (comm_ == nullptr) return absl::OkStatus();  // never joined, or aborted
    TANDEM_NCCL_RETURN_IF_ERROR(ncclCommFinalize(comm_));
    TANDEM_RETURN_IF_ERROR(life_.Await("leave", Deadline::After(kFinalizeTimeout)));
    TANDEM_NCCL_RETURN_IF_ERROR(ncclCommDestroy(std::exchange(comm_, nullptr)));
    return absl::OkStatus();
  }

  // One collective of each kind: sends and receives connect on first use, which must not happen in
  // a step or a capture. The results are not read.
  absl::Status WarmUp(Deadline deadline) {
    const size_t bytes = kWarmUpFloats * sizeof(float);
    TANDEM_NCCL_RETURN_IF_ERROR(ncclMemAlloc(&warm_up_, bytes * (static_cast<size_t>(size_) + 1)));
    auto* const own = static_cast<float*>(warm_up_);
    float* const all = own + kWarmUpFloats;
    const auto settle = [&](const absl::Status& issued) {
      return issued.ok() ? life_.Await("join", deadline) : issued;
    };
    TANDEM_RETURN_IF_ERROR(settle(IssueAllReduce(own, kWarmUpFloats)));
    TANDEM_RETURN_IF_ERROR(settle(IssueGather(own, bytes, all, 0)));
    TANDEM_RETURN_IF_ERROR(settle(IssueAllGather(own, bytes, all)));
    return settle(IssueBroadcast(own, bytes, 0));
  }

  // Issues a collective and ensures that its work is on the stream before any other work. Errors
  // are returned by Submit.
  template <typename Issue>
  void Enqueue(const CollectiveTag& tag, const Issue& issue) {
    absl::Status status = life_.Check();
    if (status.ok()) status = issue();
    if (status.ok()) {
      const absl::StatusOr<bool> done = life_.Poll();
      status = done.status();
      if (done.ok() && !*done) {
        NoteBlockingCall("a collective that NCCL had to connect");
        status = life_.Await(ToString(tag), Deadline::After(kIssueTimeout));
      }
    }
    if (status.ok()) return;
    life_.Cancel(status);
    stream_.NoteError(status);
  }

  absl::Status IssueAllReduce(float* data, size_t count) {
    TANDEM_NCCL_RETURN_IF_ERROR(
        ncclAllReduce(data, data, count, ncclFloat32, ncclSum, comm_, stream()));
    return absl::OkStatus();
  }

  absl::Status IssueGather(const void* send, size_t bytes, void* recv, int root) {
    TANDEM_NCCL_RETURN_IF_ERROR(ncclGroupStart());
    absl::Status status = IssueGatherParts(send, bytes, recv, root);
    // End the group in any case.
    absl::Status ended = NcclStatus(ncclGroupEnd(), "ncclGroupEnd()", __FILE__, __LINE__);
    return status.ok() ? ended : status;
  }

  absl::Status IssueGatherParts(const void* send, size_t bytes, void* recv, int root) {
    TANDEM_NCCL_RETURN_IF_ERROR(ncclSend(send, bytes, ncclInt8, root, comm_, stream()));
    for (int peer = 0; rank_ == root && peer < size_; ++peer) {
      void* const part = static_cast<std::byte*>(recv) + static_cast<size_t>(peer) * bytes;
      TANDEM_NCCL_RETURN_IF_ERROR(ncclRecv(part, bytes, ncclInt8, peer, comm_, stream()));
    }
    return absl::OkStatus();
  }

  absl::Status IssueAllGather(const void* send, size_t bytes, void* recv) {
    TANDEM_NCCL_RETURN_IF_ERROR(ncclAllGather(send, recv, bytes, ncclInt8, comm_, stream()));
    return absl::OkStatus();
  }

  absl::Status IssueBroadcast(void* data, size_t bytes, int root) {
    TANDEM_NCCL_RETURN_IF_ERROR(ncclBroadcast(data, data, bytes, ncclInt8, root, comm_, stream()));
    return absl::OkStatus();
  }

  const int rank_;
  const int size_;
  const ncclUniqueId id_;
  kernels::DeviceStream& stream_;
  AsyncLife life_;
  ncclComm_t comm_ = nullptr;
  void* warm_up_ = nullptr;  // device memory; kept until the work of Join is certainly done
};

}  // namespace

void RegisterNcclCommunicator() {
  // Disables connecting on first use: Join makes all connections. The operator may override it.
  setenv("NCCL_RUNTIME_CONNECT", "0", /*overwrite=*/0);
  RegisterDeviceCommunicator(&OpenNcclCommunicator);
}

absl::StatusOr<std::unique_ptr<Communicator>> OpenNcclCommunicator(const CommunicatorParts& parts) {
  TANDEM_CHECK(parts.device_stream != nullptr);
  TANDEM_ASSIGN_OR_RETURN(const ncclUniqueId id, ExchangeId(parts));
  return std::make_unique<NcclCommunicator>(parts, id);
}

}  // namespace tandem::worker
