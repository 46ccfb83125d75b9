#include "tests/worker/comm/local_communicator.h"

#include <cstring>
#include <optional>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/check.h"
#include "common/base/mutex.h"
#include "common/base/status.h"
#include "worker/comm/collective.h"
#include "worker/comm/reduce.h"

namespace tandem::worker {
namespace {

// What one rank brings to a collective.
struct Part {
  CollectiveTag tag;
  const std::byte* send = nullptr;
  std::byte* recv = nullptr;
};

void Move(std::byte* to, const std::byte* from, size_t bytes) {
  if (to != from && bytes > 0) std::memmove(to, from, bytes);
}

void AllReduce(const std::vector<Part>& parts) {
  std::vector<const float*> sources;
  for (const Part& part : parts) sources.push_back(reinterpret_cast<const float*>(part.send));
  const size_t bytes = parts[0].tag.bytes;
  SumInRankOrder(sources.data(), static_cast<int>(sources.size()),
                 reinterpret_cast<float*>(parts[0].recv), bytes / sizeof(float));
  for (const Part& part : parts) Move(part.recv, parts[0].recv, bytes);
}

void GatherTo(const std::vector<Part>& parts, const Part& root) {
  const size_t bytes = root.tag.bytes;
  for (size_t rank = 0; rank < parts.size(); ++rank) {
    if (parts[rank].send != nullptr) Move(root.recv + rank * bytes, parts[rank].send, bytes);
  }
}

void Execute(const std::vector<Part>& parts) {
  const CollectiveTag& tag = parts[0].tag;
  switch (tag.kind) {
    case CollectiveKind::kAllReduce:
      return AllReduce(parts);
    case CollectiveKind::kGather:
      return GatherTo(parts, parts[tag.root]);
    case CollectiveKind::kAllGather:
      for (const Part& part : parts) GatherTo(parts, part);
      return;
    case CollectiveKind::kBroadcast:
      for (const Part& part : parts) Move(part.recv, parts[tag.root].send, tag.bytes);
      return;
    case CollectiveKind::kJoin:
      return;
  }
}

// Where the ranks meet; while they wait here their buffers are the group's.
class LocalGroup {
 public:
  explicit LocalGroup(int size) : size_(size), parts_(size) {}

  int size() const { return size_; }

  absl::Status Meet(int rank, const Part& part, Deadline deadline) {
    MutexLock lock(mutex_);
    TANDEM_RETURN_IF_ERROR(aborted_);
    if (arrived_ > 0 && part.tag != tag_) {
      AbortLocked(TagMismatch(rank, part.tag, "others", tag_));
      return aborted_;
    }
    tag_ = part.tag;
    parts_[rank] = part;
    const uint64_t round = round_;
    if (++arrived_ == size()) {
      FinishRound();
      return absl::OkStatus();
    }
    changed_.Wait(lock, deadline,
                  [&]() TANDEM_REQUIRES(mutex_) { return round_ != round || !aborted_.ok(); });
    if (round_ != round) return absl::OkStatus();
    if (aborted_.ok()) AbortLocked(MissingRanks(MissingList(), size(), part.tag));
    return aborted_;
  }

  void Abort(const absl::Status& reason) {
    MutexLock lock(mutex_);
    AbortLocked(reason);
  }

 private:
  void FinishRound() TANDEM_REQUIRES(mutex_) {
    std::vector<Part> parts;
    for (auto& part : parts_) parts.push_back(*std::exchange(part, std::nullopt));
    Execute(parts);
    arrived_ = 0;
    ++round_;
    changed_.NotifyAll();
  }

  void AbortLocked(const absl::Status& reason) TANDEM_REQUIRES(mutex_) {
    if (aborted_.ok()) aborted_ = reason;
    changed_.NotifyAll();
  }

  std::string MissingList() const TANDEM_REQUIRES(mutex_) {
    std::string list;
    for (int rank = 0; rank < size(); ++rank) {
      if (!parts_[rank]) absl::StrAppend(&list, list.empty() ? "" : ", ", rank);
    }
    return list;
  }

  const int size_;
  Mutex mutex_;
  CondVar changed_;
  // Of the ranks that have arrived.
  std::vector<std::optional<Part>> parts_ TANDEM_GUARDED_BY(mutex_);
  CollectiveTag tag_ TANDEM_GUARDED_BY(mutex_);
  int arrived_ TANDEM_GUARDED_BY(mutex_) = 0;
  uint64_t round_ TANDEM_GUARDED_BY(mutex_) = 0;
  absl::Status aborted_ TANDEM_GUARDED_BY(mutex_);
};

class LocalCommunicator : public Communicator {
 public:
  LocalCommunicator(int rank, kernels::HostStream& stream, std::shared_ptr<LocalGroup> group)
      : rank_(rank), stream_(stream), group_(std::move(group)) {}

  int rank() const override { return rank_; }
  int size() const override { return group_->size(); }

  absl::Status Join(Deadline deadline) override {
    return group_->Meet(rank_, {.tag = {CollectiveKind::kJoin, 0, 0}}, deadline);
  }
  void AllReduceSum(float* data, size_t count) override {
    if (size() == 1) return;
    Enqueue({CollectiveKind::kAllReduce, 0, count * sizeof(float)}, data, data);
  }
  void Gather(const void* send, size_t bytes, void* recv, int root) override {
    TANDEM_CHECK(root >= 0 && root < size()) << "root " << root << " of " << size();
    TANDEM_CHECK(send != nullptr || bytes == 0 || rank_ == root) << "rank " << rank_;
    if (size() == 1 && send == recv) return;
    Enqueue({CollectiveKind::kGather, static_cast<uint32_t>(root), bytes}, send, recv);
  }
  void AllGather(const void* send, size_t bytes, void* recv) override {
    if (size() == 1 && send == recv) return;
    Enqueue({CollectiveKind::kAllGather, 0, bytes}, send, recv);
  }
  void Broadcast(void* data, size_t bytes, int root) override {
    TANDEM_CHECK(root >= 0 && root < size()) << "root " << root << " of " << size();
    if (size() == 1) return;
    Enqueue({CollectiveKind::kBroadcast, static_cast<uint32_t>(root), bytes}, data, data);
  }
  void Abort(const absl::Status& reason) override { group_->Abort(AbortReason(reason)); }

 private:
  void Enqueue(const CollectiveTag& tag, const void* send, void* recv) {
    const Part part{tag, static_cast<const std::byte*>(send), static_cast<std::byte*>(recv)};
    stream_.Enqueue(
        [this, part](Deadline deadline) { return group_->Meet(rank_, part, deadline); });
  }

  const int rank_;
  kernels::HostStream& stream_;
  const std::shared_ptr<LocalGroup> group_;
};

}  // namespace

std::vector<std::unique_ptr<Communicator>> MakeLocalCommunicators(
    const std::vector<kernels::HostStream*>& streams) {
  TANDEM_CHECK(!streams.empty());
  auto group = std::make_shared<LocalGroup>(static_cast<int>(streams.size()));
  std::vector<std::unique_ptr<Communicator>> communicators;
  for (size_t rank = 0; rank < streams.size(); ++rank) {
    communicators.push_back(
        std::make_unique<LocalCommunicator>(static_cast<int>(rank), *streams[rank], group));
  }
  return communicators;
}

}  // namespace tandem::worker
