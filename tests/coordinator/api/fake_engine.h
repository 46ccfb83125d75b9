// FakeEngine: an EngineHandle that computes nothing; the test defines the reply to each request.
#ifndef TANDEM_TESTS_COORDINATOR_API_FAKE_ENGINE_H_
#define TANDEM_TESTS_COORDINATOR_API_FAKE_ENGINE_H_

#include <algorithm>
#include <condition_variable>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/base/clock.h"
#include "coordinator/engine/engine.h"

namespace tandem::coordinator {

// As a writer does. False if the stream accepts no more.
inline bool Send(TokenStream& stream, StreamUpdate update) {
  const Taken taken = stream.OnUpdate(std::move(update));
  stream.Flush();
  return !taken.stopped;
}

// Thread-safe.
class FakeEngine : public EngineHandle {
 public:
  absl::StatusOr<std::vector<RequestHandle>> AddAll(std::vector<Request> requests) override {
    std::lock_guard lock(mutex_);
    if (!refusal_.ok()) return refusal_;
    for (const Request& request : requests) {
      if (request.prompt.empty()) return absl::InvalidArgumentError("the prompt is empty");
      if (Find(request.id) == running_.end()) continue;
      return absl::AlreadyExistsError(
          absl::StrCat("request id '", request.id, "' is already in flight"));
    }
    std::vector<RequestHandle> handles;
    for (Request& request : requests) {
      handles.push_back(added_.size() + 1);
      running_[handles.back()] = {.id = request.id, .stream = request.stream};
      added_.push_back(std::move(request));
    }
    changed_.notify_all();
    return handles;
  }

  void Cancel(RequestHandle handle) override {
    std::shared_ptr<TokenStream> stream;
    {
      std::lock_guard lock(mutex_);
      cancelled_.push_back(added_.at(handle - 1).id);
      stream = Remove(running_.find(handle));
    }
    changed_.notify_all();
    if (stream != nullptr) Send(*stream, {.reason = FinishReason::kCancelled});
  }

  absl::Status ResetPrefixCache() override {
    std::lock_guard lock(mutex_);
    ++num_resets_;
    return refusal_;
  }

  EngineStats Stats() const override {
    return {{.total_blocks = 1,
             .free_blocks = 2,
             .cached_blocks = 3,
             .snapshots = 13,
             .cached_snapshots = 14},
            {.running = 4,
             .waiting = 5,
             .requests = 12,
             .preemptions = 6,
             .queried_tokens = 16,
             .cached_tokens = 15,
             .drafts = 19,
             .accepted_drafts = 20},
            7,
            8,
            9,
            17,
            10,
            11,
            18,
            21};
  }

  // --- what the test does ---

  // Add's answer from here on.
  void Refuse(const absl::Status& status) {
    std::lock_guard lock(mutex_);
    refusal_ = status;
  }
  // The first `count` requests that were added, in order; fewer when they do not come in time.
  std::vector<Request> WaitForRequests(size_t count) {
    std::unique_lock lock(mutex_);
    Patience().Wait(changed_, lock, [&] { return added_.size() >= count; });
    return added_;
  }
  // The ids that were cancelled, once there is one.
  std::vector<std::string> WaitForCancel() { return WaitForCancels(1); }
  // The ids that were cancelled, once there are as many.
  std::vector<std::string> WaitForCancels(size_t count) {
    std::unique_lock lock(mutex_);
    Patience().Wait(changed_, lock, [&] { return cancelled_.size() >= count; });
    return cancelled_;
  }
  int num_resets() const {
    std::lock_guard lock(mutex_);
    return num_resets_;
  }
  std::vector<std::string> cancelled() const {
    std::lock_guard lock(mutex_);
    return cancelled_;
  }
  // As the engine does: the request is removed when its stream receives the end.
  void Finish(const std::string& id, TokenId token, FinishReason reason, const Usage& usage) {
    Send(*Leave(id), {.tokens = {token}, .reason = reason, .usage = usage});
  }
  void Fail(const std::string& id, const absl::Status& status) {
    Send(*Leave(id), {.status = status});
  }
  // The moment between the two: the request is gone, and its stream has not heard of it.
  std::shared_ptr<TokenStream> Leave(const std::string& id) {
    std::lock_guard lock(mutex_);
    return Remove(Find(id));
  }

 private:
  static Deadline Patience() { return Deadline::After(std::chrono::seconds(60)); }

  struct Running {
    std::string id;
    std::shared_ptr<TokenStream> stream;
  };
  using RunningMap = std::map<RequestHandle, Running>;

  RunningMap::iterator Find(const std::string& id) {
    return std::find_if(running_.begin(), running_.end(),
                        [&](const auto& entry) { return entry.second.id == id; });
  }

  std::shared_ptr<TokenStream> Remove(RunningMap::iterator found) {
    if (found == running_.end()) return nullptr;
    auto stream = std::move(found->second.stream);
    running_.erase(found);
    return stream;
  }

  mutable std::mutex mutex_;
  std::condition_variable changed_;
  absl::Status refusal_;
  RunningMap running_;
  std::vector<Request> added_;
  std::vector<std::string> cancelled_;
  int num_resets_ = 0;
};

}  // namespace tandem::coordinator

#endif  // TANDEM_TESTS_COORDINATOR_API_FAKE_ENGINE_H_
