// PollPause: what a wait that polls does between two looks: at first nothing, as most answers come
// soon, and then it sleeps.
//
//   for (PollPause pause; !Ready(); pause()) continue;
#ifndef TANDEM_COMMON_BASE_POLL_PAUSE_H_
#define TANDEM_COMMON_BASE_POLL_PAUSE_H_

#include <chrono>
#include <thread>

#include "common/base/clock.h"

namespace tandem {

class PollPause {
 public:
  void operator()() const {
    if (spin_until_.Passed()) std::this_thread::sleep_for(kPause);
  }

 private:
  // A decode step rarely takes more than a few milliseconds.
  static constexpr auto kSpin = std::chrono::milliseconds(20);
  static constexpr auto kPause = std::chrono::microseconds(50);

  const Deadline spin_until_ = Deadline::After(kSpin);
};

}  // namespace tandem

#endif  // TANDEM_COMMON_BASE_POLL_PAUSE_H_
