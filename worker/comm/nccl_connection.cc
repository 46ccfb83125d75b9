#include "worker/comm/nccl_connection.h"

#include <algorithm>
#include <functional>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/log.h"
#include "common/base/mutex.h"
#include "common/base/status.h"
#include "kernels/cuda/check.h"
#include "worker/comm/nccl_collectives.h"

namespace tandem::worker {
namespace {

constexpr auto kEndTimeout = std::chrono::seconds(5);
// Calls that wait for no peer return within this.
constexpr auto kCallGrace = std::chrono::milliseconds(200);
// Of each rank in the collectives of joining.
constexpr size_t kWarmUpFloats = 16;

absl::Status End(ncclComm_t comm, bool abort) {
  if (abort) {
    TANDEM_NCCL_RETURN_IF_ERROR(ncclCommAbort(comm));
    return absl::OkStatus();
  }
  const ncclResult_t finalized = ncclCommFinalize(comm);
  TANDEM_NCCL_RETURN_IF_ERROR(ncclCommDestroy(comm));
  return NcclStatus(finalized, "ncclCommFinalize", __FILE__, __LINE__);
}

}  // namespace

absl::Status NcclStatus(ncclResult_t result, const char* call, const char* file, int line) {
  if (result == ncclSuccess) return absl::OkStatus();
  std::string message = absl::StrCat(file, ":", line, ": ", call, ": ", ncclGetErrorString(result));
  if (const char* last = ncclGetLastError(nullptr); last != nullptr && *last != '\0') {
    absl::StrAppend(&message, ": ", last);
  }
  std::replace(message.begin(), message.end(), '\n', ' ');
  // The loss of a peer is not our bug.
  return result == ncclRemoteError ? absl::UnavailableError(message) : absl::InternalError(message);
}

// What joining and the driving thread share. The communicator belongs to joining until `joined`,
// then to the driving thread. An abort also takes it from under a call of joining that blocks,
// which ncclCommAbort ends.
struct NcclConnection::Shared {
  const int rank;
  const int size;
  const ncclUniqueId id;
  const cudaStream_t stream;
  int device = 0;

  Mutex mutex{};
  CondVar left_call{};
  ncclComm_t comm TANDEM_GUARDED_BY(mutex) = nullptr;
  bool in_call TANDEM_GUARDED_BY(mutex) = false;  // joining is in a call that may block
  bool made TANDEM_GUARDED_BY(mutex) = false;     // `comm` was there
  bool joined TANDEM_GUARDED_BY(mutex) = false;
  bool over TANDEM_GUARDED_BY(mutex) = false;  // joining begins no further call

  // Runs `call` on a background thread as the driving thread would; an error goes to the log.
  template <typename Call>
  absl::Status OnDevice(const Call& call) {
    absl::Status status = TANDEM_CUDA_STATUS(cudaSetDevice(device));
    if (status.ok()) status = call();
    if (!status.ok()) {
      TANDEM_LOG(kWarning) << "rank " << rank << ": " << status.message();
    }
    return status;
  }
  // Whether there is or was a communicator: joining has got past the call that nothing can end.
  bool Made() TANDEM_EXCLUDES(mutex) {
    MutexLock lock(mutex);
    return made;
  }
  // Aborts the communicator: at once if joined, else if joining stays in a call. A call that
  // returns leaves the rest to joining.
  absl::Status Abort() TANDEM_EXCLUDES(mutex) {
    ncclComm_t taken = nullptr;
    {
      MutexLock lock(mutex);
      const bool left = left_call.Wait(lock, Deadline::After(kCallGrace),
                                       [&]() TANDEM_REQUIRES(mutex) { return !in_call; });
      if (left && !joined) return absl::OkStatus();
      taken = std::exchange(comm, nullptr);
    }
    return taken == nullptr ? absl::OkStatus() : End(taken, /*abort=*/true);
  }
  absl::Status Join();
  absl::Status WarmUp(const NcclRank& self);
  template <typename Call>
  absl::Status Blocking(const Call& call) TANDEM_EXCLUDES(mutex) {
    {
      MutexLock lock(mutex);
      if (over) return GivenUp();
      in_call = true;
    }
    const absl::Status status = call();
    MutexLock lock(mutex);
    in_call = false;
    left_call.NotifyAll();
    return over ? GivenUp() : status;
  }
  static absl::Status GivenUp() { return absl::AbortedError("joining was given up"); }
};

absl::Status NcclConnection::Shared::Join() {
  TANDEM_RETURN_IF_ERROR(TANDEM_CUDA_STATUS(cudaSetDevice(device)));
  ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
  config.blocking = 1;
  ncclComm_t own = nullptr;
  // There is no communicator to abort yet: if a peer never comes, this call never returns.
  TANDEM_NCCL_RETURN_IF_ERROR(ncclCommInitRankConfig(&own, size, id, rank, &config));
  {
    MutexLock lock(mutex);
    comm = own;
    made = true;
  }
  const absl::Status status = WarmUp({.comm = own, .rank = rank, .size = size, .stream = stream});
  ncclComm_t unwanted = nullptr;
  {
    MutexLock lock(mutex);
    joined = status.ok() && !over;
    if (joined) return absl::OkStatus();
    over = true;
    unwanted = std::exchange(comm, nullptr);  // null if it was taken
  }
  if (unwanted != nullptr) End(unwanted, /*abort=*/true).IgnoreError();
  return status.ok() ? GivenUp() : status;
}

// One collective of each kind, run to its end: NCCL connects peers on first use, which must not
// happen in a step or a capture. The results are not read.
absl::Status NcclConnection::Shared::WarmUp(const NcclRank& self) {
  const size_t bytes = kWarmUpFloats * sizeof(float);
  void* memory = nullptr;
  TANDEM_NCCL_RETURN_IF_ERROR(ncclMemAlloc(&memory, bytes * (static_cast<size_t>(size) + 1)));
  auto* const own = static_cast<float*>(memory);
  float* const all = own + kWarmUpFloats;
  const std::function<ncclResult_t()> first_uses[] = {
      [&] { return NcclAllReduceSum(self, own, kWarmUpFloats); },
      [&] { return NcclGather(self, own, bytes, all, 0); },
      [&] { return NcclAllGather(self, own, bytes, all); },
      [&] { return NcclBroadcast(self, own, bytes, 0); },
  };
  for (const auto& use : first_uses) {
    TANDEM_RETURN_IF_ERROR(
        Blocking([&] { return NcclStatus(use(), "first use", __FILE__, __LINE__); }));
  }
  // After an error `memory` stays: work that is not done may still use it.
  TANDEM_RETURN_IF_ERROR(
      Blocking([&] { return TANDEM_CUDA_STATUS(cudaStreamSynchronize(stream)); }));
  TANDEM_NCCL_RETURN_IF_ERROR(ncclMemFree(memory));
  return absl::OkStatus();
}

NcclConnection::NcclConnection(int rank, int size, const ncclUniqueId& id, cudaStream_t stream)
    : shared_(new Shared{.rank = rank, .size = size, .id = id, .stream = stream}) {
  (void)cudaGetDevice(&shared_->device);
}

NcclConnection::~NcclConnection() {
  if (comm_ != nullptr) {
    ending_.Begin([shared = shared_, comm = comm_] {
      return shared->OnDevice([&] { return End(comm, /*abort=*/false); });
    });
  } else {
    Abort();
  }
  const Deadline end = Deadline::After(kEndTimeout);
  // Nothing ends a call that makes a communicator, so that one is not waited for.
  const Deadline joined = shared_->Made() ? end : Deadline::After(Duration::zero());
  if (!joining_.WaitUntil(joined) || !ending_.WaitUntil(end)) {
    TANDEM_LOG(kWarning) << "rank " << shared_->rank << " of " << shared_->size
                         << ": NCCL's communicator does not end and is abandoned";
  }
}

void NcclConnection::Join() {
  joining_.Begin([shared = shared_] { return shared->Join(); });
}

absl::StatusOr<bool> NcclConnection::Done() {
  if (!joining_.begun()) return true;
  if (comm_ == nullptr) {
    const std::optional<absl::Status> joined = joining_.Result();
    if (!joined.has_value()) return false;
    TANDEM_RETURN_IF_ERROR(*joined);
    MutexLock lock(shared_->mutex);
    comm_ = shared_->comm;
  }
  ncclResult_t state = ncclSuccess;
  TANDEM_NCCL_RETURN_IF_ERROR(ncclCommGetAsyncError(comm_, &state));
  TANDEM_RETURN_IF_ERROR(NcclStatus(state, "asynchronous error", __FILE__, __LINE__));
  return true;
}

void NcclConnection::Abort() {
  {
    MutexLock lock(shared_->mutex);
    shared_->over = true;
  }
  comm_ = nullptr;
  if (joining_.begun() && !ending_.begun()) {
    ending_.Begin([shared = shared_] { return shared->OnDevice([&] { return shared->Abort(); }); });
  }
}

}  // namespace tandem::worker
