#include "tests/sim/invariants.h"

#include <algorithm>
#include <string>

#include "absl/strings/str_cat.h"
#include "tests/sim/violation.h"

namespace tandem::sim {
namespace {

using std::chrono::seconds;

// Most events are messages on their way: what they can't have changed is looked at every so often.
constexpr uint64_t kEventsPerCheck = 16;

}  // namespace

void Invariants::Check() {
  const int64_t steps = core_.timings().steps;
  const TimePoint now = host_.network.clock.Now();
  if (steps == checked_steps_ && host_.network.clock.num_events() % kEventsPerCheck != 0 &&
      now - checked_at_ < seconds(1)) {
    return;
  }
  checked_steps_ = steps;
  checked_at_ = now;
  CheckAccounts();
  CheckNotice();
  CheckProgress();
}

void Invariants::CheckAccounts() const {
  RequireOk(core_.CheckIntegrity());
  const auto links = host_.network.registry.links();
  const size_t num_taken = links.size() - static_cast<size_t>(std::ranges::count(links, nullptr));
  Require(num_taken == fleet_.num_connected(), "a rank is held twice");
  Require(workload_.in_flight().size() <= engine_.capacity(), "too many requests in flight");
}

void Invariants::CheckNotice() {
  const TimePoint now = host_.network.clock.Now();
  const auto epoch = static_cast<uint64_t>(core_.Stats().epoch);
  if (recovering_ || !fleet_.AnyBroken(epoch)) {
    broken_since_ = TimePoint::max();
    return;
  }
  broken_since_ = std::min(broken_since_, now);
  const Duration most = host_.scenario.engine.step_timeout + seconds(12);
  Require(now - broken_since_ <= most, "a worker that does not run is not noticed");
}

void Invariants::CheckProgress() {
  const TimePoint now = host_.network.clock.Now();
  const Duration most = host_.scenario.engine.step_timeout + seconds(30);
  const Client* oldest = nullptr;
  for (const auto& client : workload_.in_flight()) {
    if (client->over()) continue;
    if (client->cancelled_at() != TimePoint::max()) {
      Require(now - client->cancelled_at() <= most, "a cancelled request does not end");
    }
    if (client->deadline() <= now) {
      Require(now - client->deadline() <= most, "a request does not end at its deadline");
    }
    if (oldest == nullptr) oldest = client.get();
  }
  const int64_t steps = core_.timings().steps;
  if (oldest == nullptr || recovering_ || oldest->handle() != oldest_ ||
      oldest->num_tokens() != oldest_tokens_) {
    oldest_ = oldest == nullptr ? 0 : oldest->handle();
    oldest_tokens_ = oldest == nullptr ? 0 : oldest->num_tokens();
    oldest_since_ = steps;
    return;
  }
  // A prompt in chunks of one token, and what waits for a writer.
  const int64_t most_steps = 2 * host_.scenario.engine.scheduler.max_model_len + 2000;
  Require(steps - oldest_since_ <= most_steps, "the oldest request makes no progress");
}

void Invariants::CheckLoss(const absl::Status& loss) {
  const bool explained = host_.network.harm.last() > last_loss_ || fleet_.AnyStopped();
  Require(explained, absl::StrCat("nothing has happened to the workers, but: ", loss.message()));
  last_loss_ = host_.network.clock.Now();
}

void Invariants::EndRecovery(bool succeeded) {
  recovering_ = false;
  if (!succeeded) return;
  const TimePoint now = host_.network.clock.Now();
  // The coordinator counts from the begin of a recovery.
  restarts_.push_back(last_loss_);
  while (!restarts_.empty() && now - restarts_.front() > host_.scenario.restart_window) {
    restarts_.pop_front();
  }
  Require(restarts_.size() <= static_cast<size_t>(host_.scenario.max_restarts),
          "more restarts than the budget");
}

void Invariants::CheckEnd() const {
  CheckAccounts();
  for (const auto& client : workload_.in_flight()) {
    Require(client->over(), absl::StrCat("request ", client->request().id, " has no end"));
  }
  const auto stats = core_.Stats();
  Require(stats.running == 0 && stats.waiting == 0, "a sequence is left over");
  Require(stats.free_blocks == stats.total_blocks, "a block is left over");
}

}  // namespace tandem::sim
