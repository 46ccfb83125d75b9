#include "common/base/event_clock.h"

#include <algorithm>

#include "common/base/check.h"

namespace tandem {
namespace {

// One round of FNV-1a (Fowler, Noll and Vo), a word at a time.
uint64_t Fold(uint64_t state, uint64_t value) { return (state ^ value) * 0x100000001b3; }

}  // namespace

void EventClock::WaitUntil(std::condition_variable&, std::unique_lock<std::mutex>& lock,
                           TimePoint when) const {
  lock.unlock();
  if (before_wait_) before_wait_();
  RunNext(when);
  lock.lock();
}

bool EventClock::WaitFor(Duration timeout, const std::function<bool()>& done) const {
  const TimePoint end = now_ + timeout;
  while (!done() && now_ < end) RunNext(end);
  return done();
}

void EventClock::At(TimePoint when, std::function<void()> event) {
  events_.emplace(std::pair(std::max(when, now_), num_set_++), std::move(event));
}

void EventClock::RunNext(TimePoint when) const {
  TANDEM_CHECK(!in_event_) << "an event waits";
  if (events_.empty() || events_.begin()->first.first > when) {
    now_ = std::max(now_, when);
    return;
  }
  const auto next = events_.extract(events_.begin());
  now_ = next.key().first;
  ++num_events_;
  trace_ =
      Fold(Fold(trace_, next.key().second), static_cast<uint64_t>(now_.time_since_epoch().count()));
  in_event_ = true;
  next.mapped()();
  if (observer_) observer_();
  in_event_ = false;
}

}  // namespace tandem
