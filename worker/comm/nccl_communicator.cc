#include "worker/comm/nccl_communicator.h"

#include <cstdlib>
#include <cstring>
#include <string>

#include "absl/strings/str_cat.h"
#include "common/base/check.h"
#include "common/base/status.h"
#include "worker/comm/communicator_watch.h"
#include "worker/comm/nccl_collectives.h"
#include "worker/comm/nccl_connection.h"
#include "worker/comm/open_communicator.h"

namespace tandem::worker {
namespace {

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

class NcclCommunicator final : public Communicator {
 public:
  NcclCommunicator(const CommunicatorParts& parts, const ncclUniqueId& id)
      : rank_(parts.rank),
        size_(parts.size),
        stream_(*parts.device_stream),
        connection_(rank_, size_, id, cuda_stream()),
        watch_(connection_, absl::StrCat("rank ", rank_, " of ", size_)) {}

  ~NcclCommunicator() override { stream_.SetWatch(nullptr); }

  int rank() const override { return rank_; }
  int size() const override { return size_; }

  absl::Status Join(Deadline deadline) override {
    TANDEM_RETURN_IF_ERROR(watch_.Check());
    connection_.Join();
    TANDEM_RETURN_IF_ERROR(watch_.Await("join", deadline));
    stream_.SetWatch(&watch_);
    return absl::OkStatus();
  }

  void AllReduceSum(float* data, size_t count) override {
    Enqueue([&] { return NcclAllReduceSum(Self(), data, count); }, "all-reduce");
  }
  void Gather(const void* send, size_t bytes, void* recv, int root) override {
    TANDEM_CHECK(root >= 0 && root < size_) << "root " << root << " of " << size_;
    TANDEM_CHECK(send != nullptr || bytes == 0 || rank_ == root) << "rank " << rank_;
    Enqueue([&] { return NcclGather(Self(), send, bytes, recv, root); }, "gather");
  }
  void AllGather(const void* send, size_t bytes, void* recv) override {
    Enqueue([&] { return NcclAllGather(Self(), send, bytes, recv); }, "all-gather");
  }
  void Broadcast(void* data, size_t bytes, int root) override {
    TANDEM_CHECK(root >= 0 && root < size_) << "root " << root << " of " << size_;
    Enqueue([&] { return NcclBroadcast(Self(), data, bytes, root); }, "broadcast");
  }

  void Abort(const absl::Status& reason) override { watch_.Abort(reason); }

 private:
  cudaStream_t cuda_stream() const { return static_cast<cudaStream_t>(stream_.handle()); }
  NcclRank Self() const {
    return {.comm = connection_.comm(), .rank = rank_, .size = size_, .stream = cuda_stream()};
  }

  // Errors come back from Submit.
  template <typename Issue>
  void Enqueue(const Issue& issue, const char* what) {
    absl::Status status = watch_.Check();
    if (status.ok()) status = NcclStatus(issue(), what, __FILE__, __LINE__);
    if (status.ok()) return;
    watch_.Cancel(status);
    stream_.NoteError(status);
  }

  const int rank_;
  const int size_;
  kernels::DeviceStream& stream_;
  NcclConnection connection_;
  CommunicatorWatch watch_;
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
