#include "worker/comm/background_call.h"

#include <thread>
#include <utility>

#include "common/base/check.h"
#include "common/base/mutex.h"

namespace tandem::worker {

struct BackgroundCall::State {
  Mutex mutex;
  CondVar ended;
  std::optional<absl::Status> result TANDEM_GUARDED_BY(mutex);
};

void BackgroundCall::Begin(std::function<absl::Status()> call) {
  TANDEM_CHECK(!begun()) << "a second call";
  state_ = std::make_shared<State>();
  std::thread([state = state_, call = std::move(call)]() mutable {
    const absl::Status result = call();
    call = nullptr;  // release its captures before reporting the end
    MutexLock lock(state->mutex);
    state->result = result;
    state->ended.NotifyAll();
  }).detach();
}

std::optional<absl::Status> BackgroundCall::Result() const {
  MutexLock lock(state_->mutex);
  return state_->result;
}

bool BackgroundCall::WaitUntil(Deadline deadline) const {
  if (!begun()) return true;
  MutexLock lock(state_->mutex);
  State& state = *state_;
  return state.ended.Wait(lock, deadline,
                          [&]() TANDEM_REQUIRES(state.mutex) { return state.result.has_value(); });
}

}  // namespace tandem::worker
