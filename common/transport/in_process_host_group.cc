#include "common/transport/in_process_host_group.h"

#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/check.h"
#include "common/base/mutex.h"
#include "common/base/status.h"
#include "common/base/step_guard.h"

namespace tandem::transport {
namespace {

using Values = std::vector<std::string>;

// Where the ranks meet. One round at a time: no rank begins the next before all have begun this
// one, and the last to arrive publishes the round's values.
class MeetingPoint {
 public:
  explicit MeetingPoint(int size) : size_(size), values_(size) {}

  int size() const { return size_; }

  // `call` names the collective; all ranks of a round must give the same.
  absl::StatusOr<std::shared_ptr<const Values>> Meet(int rank, const std::string& call,
                                                     std::string value, Deadline deadline) {
    MutexLock lock(mutex_);
    TANDEM_RETURN_IF_ERROR(broken_);
    if (arrived_ > 0 && call != call_) {
      return Break(absl::InternalError(
          absl::StrCat("host group: rank ", rank, " calls ", call, ", others ", call_)));
    }
    call_ = call;
    values_[rank] = std::move(value);
    const uint64_t round = round_;
    if (++arrived_ == size()) {
      FinishRound();
      return finished_;
    }
    changed_.Wait(lock, deadline,
                  [&]() TANDEM_REQUIRES(mutex_) { return round_ != round || !broken_.ok(); });
    if (round_ != round) return finished_;
    if (!broken_.ok()) return broken_;
    return Break(absl::DeadlineExceededError(
        absl::StrCat("host group: ", call, ": rank ", MissingRanks(), " did not arrive in time")));
  }

 private:
  void FinishRound() TANDEM_REQUIRES(mutex_) {
    auto all = std::make_shared<Values>();
    for (auto& value : values_) all->push_back(*std::exchange(value, std::nullopt));
    finished_ = std::move(all);
    arrived_ = 0;
    ++round_;
    changed_.NotifyAll();
  }

  absl::Status Break(absl::Status why) TANDEM_REQUIRES(mutex_) {
    broken_ = why;
    changed_.NotifyAll();
    return why;
  }

  std::string MissingRanks() const TANDEM_REQUIRES(mutex_) {
    std::string text;
    for (int rank = 0; rank < size(); ++rank) {
      if (!values_[rank]) absl::StrAppend(&text, text.empty() ? "" : ", ", rank);
    }
    return text;
  }

  const int size_;
  Mutex mutex_;
  CondVar changed_;
  // Of the ranks that arrived in this round.
  std::vector<std::optional<std::string>> values_ TANDEM_GUARDED_BY(mutex_);
  int arrived_ TANDEM_GUARDED_BY(mutex_) = 0;
  uint64_t round_ TANDEM_GUARDED_BY(mutex_) = 0;
  std::string call_ TANDEM_GUARDED_BY(mutex_);
  std::shared_ptr<const Values> finished_ TANDEM_GUARDED_BY(mutex_);  // of the last round
  absl::Status broken_ TANDEM_GUARDED_BY(mutex_);
};

class InProcessHostGroup : public HostGroup {
 public:
  InProcessHostGroup(int rank, std::shared_ptr<MeetingPoint> point)
      : rank_(rank), point_(std::move(point)) {}

  int rank() const override { return rank_; }
  int size() const override { return point_->size(); }

  absl::Status Barrier(Deadline deadline) override {
    NoteBlockingCall("HostGroup::Barrier");
    return point_->Meet(rank_, "barrier", "", deadline).status();
  }

  absl::StatusOr<std::string> Broadcast(const std::string& value, int root,
                                        Deadline deadline) override {
    NoteBlockingCall("HostGroup::Broadcast");
    TANDEM_CHECK(root >= 0 && root < size()) << "root " << root << " of " << size();
    TANDEM_ASSIGN_OR_RETURN(auto values, point_->Meet(rank_, absl::StrCat("broadcast from ", root),
                                                      rank_ == root ? value : "", deadline));
    return (*values)[root];
  }

  absl::StatusOr<Values> Exchange(const std::string& value, Deadline deadline) override {
    NoteBlockingCall("HostGroup::Exchange");
    TANDEM_ASSIGN_OR_RETURN(auto values, point_->Meet(rank_, "exchange", value, deadline));
    return *values;
  }

 private:
  const int rank_;
  const std::shared_ptr<MeetingPoint> point_;
};

}  // namespace

std::vector<std::unique_ptr<HostGroup>> MakeInProcessHostGroup(int size) {
  TANDEM_CHECK(size >= 1) << size;
  auto point = std::make_shared<MeetingPoint>(size);
  std::vector<std::unique_ptr<HostGroup>> group;
  for (int rank = 0; rank < size; ++rank) {
    group.push_back(std::make_unique<InProcessHostGroup>(rank, point));
  }
  return group;
}

}  // namespace tandem::transport
