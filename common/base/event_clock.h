// EventClock: a simulation's time and its events. A wait on this clock runs the events that are
// due until it ends, so code that blocks, and everything that it waits for, share one thread; a
// wait takes no real time. Single-threaded.
#ifndef TANDEM_COMMON_BASE_EVENT_CLOCK_H_
#define TANDEM_COMMON_BASE_EVENT_CLOCK_H_

#include <cstdint>
#include <functional>
#include <map>
#include <utility>

#include "common/base/clock.h"

namespace tandem {

class EventClock : public Clock {
 public:
  TimePoint Now() const override { return now_; }
  // Runs the next event, or ends at `when` if there is none before.
  void WaitUntil(std::condition_variable& changed, std::unique_lock<std::mutex>& lock,
                 TimePoint when) const override;

  // Runs `event` at `when`, after those that were set for the same moment before. It must not wait.
  void At(TimePoint when, std::function<void()> event);
  void After(Duration delay, std::function<void()> event) { At(now_ + delay, std::move(event)); }
  // Waits until `done`, at most for `timeout`. Returns done().
  bool WaitFor(Duration timeout, const std::function<bool()>& done) const;

  // Called at the beginning of every WaitUntil, before time passes.
  void set_before_wait(std::function<void()> before_wait) { before_wait_ = std::move(before_wait); }
  // Called after every event.
  void set_observer(std::function<void()> observer) { observer_ = std::move(observer); }
  uint64_t num_events() const { return num_events_; }
  // Equal for equal runs: a fold of all events' times and numbers.
  uint64_t trace() const { return trace_; }

 private:
  void RunNext(TimePoint when) const;

  // Clock's waits are const, and it is a wait that makes time pass.
  mutable TimePoint now_{};
  mutable std::map<std::pair<TimePoint, uint64_t>, std::function<void()>> events_;
  mutable uint64_t num_set_ = 0;
  mutable uint64_t num_events_ = 0;
  mutable uint64_t trace_ = 0;
  mutable bool in_event_ = false;
  std::function<void()> before_wait_;
  std::function<void()> observer_;
};

}  // namespace tandem

#endif  // TANDEM_COMMON_BASE_EVENT_CLOCK_H_
