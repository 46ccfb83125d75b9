#include "common/transport/channel_host_group.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/check.h"
#include "common/base/status.h"
#include "common/base/step_guard.h"
#include "common/transport/string_list.h"

namespace tandem::transport {
namespace {

using Values = std::vector<std::string>;

// Every call is an exchange; barrier and broadcast look at less of it.
class ChannelHostGroup : public HostGroup {
 public:
  ChannelHostGroup(int rank, int size) : rank_(rank), size_(size) {}

  int rank() const override { return rank_; }
  int size() const override { return size_; }

  absl::Status Barrier(Deadline deadline) override {
    NoteBlockingCall("HostGroup::Barrier");
    return Call("barrier", "", deadline).status();
  }

  absl::StatusOr<std::string> Broadcast(const std::string& value, int root,
                                        Deadline deadline) override {
    NoteBlockingCall("HostGroup::Broadcast");
    TANDEM_CHECK(root >= 0 && root < size_) << "root " << root << " of " << size_;
    TANDEM_ASSIGN_OR_RETURN(Values values, Call(absl::StrCat("broadcast from ", root),
                                                rank_ == root ? value : "", deadline));
    return std::move(values[root]);
  }

  absl::StatusOr<Values> Exchange(const std::string& value, Deadline deadline) override {
    NoteBlockingCall("HostGroup::Exchange");
    return Call("exchange", value, deadline);
  }

 protected:
  // One round: this rank's value out, all values in.
  virtual absl::StatusOr<Values> Round(const std::string& call, const std::string& value,
                                       Deadline deadline) = 0;
  virtual void CloseAll(const std::string& reason) = 0;

  static constexpr size_t kHeadStrings = 2;

  Frame Pack(const std::string& call, const Values& values) const {
    Values strings = {absl::StrCat(round_), call};
    strings.insert(strings.end(), values.begin(), values.end());
    return PackStrings(strings);
  }

  // `count` values of a frame of this round and call.
  absl::StatusOr<Values> Unpack(const Frame& frame, int from, const std::string& call,
                                size_t count) const {
    auto strings = UnpackStrings(frame);
    if (!strings || strings->size() != kHeadStrings + count) {
      return absl::InternalError(absl::StrCat("rank ", from, " sent a frame that is none of ours"));
    }
    if ((*strings)[0] != absl::StrCat(round_) || (*strings)[1] != call) {
      return absl::InternalError(absl::StrCat("rank ", from, " is in call ", (*strings)[0], " (",
                                              (*strings)[1], "), rank ", rank_, " in call ", round_,
                                              " (", call, ")"));
    }
    return Values(std::make_move_iterator(strings->begin() + kHeadStrings),
                  std::make_move_iterator(strings->end()));
  }

  const int rank_;
  const int size_;

 private:
  absl::StatusOr<Values> Call(const std::string& call, const std::string& value,
                              Deadline deadline) {
    TANDEM_RETURN_IF_ERROR(broken_);
    ++round_;
    absl::StatusOr<Values> values = Round(call, value, deadline);
    if (!values.ok()) {
      broken_ = Annotate(values.status(), absl::StrCat("host group: ", call));
      CloseAll(std::string(broken_.message()));
      return broken_;
    }
    return values;
  }

  uint64_t round_ = 0;
  absl::Status broken_;
};

class Root : public ChannelHostGroup {
 public:
  explicit Root(std::vector<std::unique_ptr<Channel>> leaves)
      : ChannelHostGroup(0, static_cast<int>(leaves.size()) + 1), leaves_(std::move(leaves)) {}

 protected:
  absl::StatusOr<Values> Round(const std::string& call, const std::string& value,
                               Deadline deadline) override {
    Values values = {value};
    std::string missing;
    const Deadline listen_until = ALittleBefore(deadline);
    for (int rank = 1; rank < size_; ++rank) {
      absl::StatusOr<Frame> frame = leaves_[rank - 1]->Receive(listen_until);
      if (frame.ok()) {
        TANDEM_ASSIGN_OR_RETURN(Values one, Unpack(*frame, rank, call, 1));
        values.push_back(std::move(one[0]));
      } else if (absl::IsDeadlineExceeded(frame.status())) {
        absl::StrAppend(&missing, missing.empty() ? "" : ", ", rank);
      } else {
        return Annotate(frame.status(), absl::StrCat("rank ", rank, " is lost"));
      }
    }
    if (!missing.empty()) {
      return absl::DeadlineExceededError(absl::StrCat("rank ", missing, " did not arrive in time"));
    }
    const Frame answer = Pack(call, values);
    for (int rank = 1; rank < size_; ++rank) {
      TANDEM_RETURN_IF_ERROR(Annotate(leaves_[rank - 1]->Send(answer, deadline),
                                      absl::StrCat("rank ", rank, " takes no answer")));
    }
    return values;
  }

  void CloseAll(const std::string& reason) override {
    for (const auto& leaf : leaves_) leaf->Close(reason);
  }

 private:
  static Deadline ALittleBefore(Deadline deadline) {
    const Duration early = std::min<Duration>(deadline.Left() / 10, std::chrono::milliseconds(100));
    return Deadline::At(deadline.when() - early, deadline.clock());
  }

  const std::vector<std::unique_ptr<Channel>> leaves_;
};

class Leaf : public ChannelHostGroup {
 public:
  Leaf(int rank, int size, std::unique_ptr<Channel> root)
      : ChannelHostGroup(rank, size), root_(std::move(root)) {}

 protected:
  absl::StatusOr<Values> Round(const std::string& call, const std::string& value,
                               Deadline deadline) override {
    TANDEM_RETURN_IF_ERROR(
        Annotate(root_->Send(Pack(call, {value}), deadline), "rank 0 takes no value"));
    absl::StatusOr<Frame> frame = root_->Receive(deadline);
    if (absl::IsDeadlineExceeded(frame.status())) {
      return absl::DeadlineExceededError("rank 0 did not answer in time");
    }
    TANDEM_RETURN_IF_ERROR(frame.status());
    return Unpack(*frame, 0, call, size_);
  }

  void CloseAll(const std::string& reason) override { root_->Close(reason); }

 private:
  const std::unique_ptr<Channel> root_;
};

}  // namespace

std::unique_ptr<HostGroup> MakeChannelHostGroupRoot(std::vector<std::unique_ptr<Channel>> leaves) {
  return std::make_unique<Root>(std::move(leaves));
}

std::unique_ptr<HostGroup> MakeChannelHostGroupLeaf(int rank, int size,
                                                    std::unique_ptr<Channel> root) {
  TANDEM_CHECK(rank >= 1 && rank < size) << "rank " << rank << " of " << size;
  return std::make_unique<Leaf>(rank, size, std::move(root));
}

}  // namespace tandem::transport
