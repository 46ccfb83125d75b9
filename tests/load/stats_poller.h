// StatsPoller: looks at a server's statistics in equal intervals while a run lasts.
#ifndef TANDEM_TESTS_LOAD_STATS_POLLER_H_
#define TANDEM_TESTS_LOAD_STATS_POLLER_H_

#include <thread>
#include <vector>

#include "common/base/mutex.h"
#include "tests/load/backend.h"
#include "tests/load/run_record.h"

namespace tandem::load {

class StatsPoller {
 public:
  // `at_s` of the points counts from `start`. Looks that fail leave a gap; a server without
  // statistics is asked once.
  StatsPoller(Backend& backend, TimePoint start, Duration interval);
  ~StatsPoller();

  // Ends the polling. Called once.
  std::vector<StatsPoint> Finish();

 private:
  void Poll();
  void StopPolling();

  Backend& backend_;
  const TimePoint start_;
  const Duration interval_;
  std::vector<StatsPoint> points_;  // of the thread, until it is joined
  Mutex mutex_;
  CondVar changed_;
  bool stop_ TANDEM_GUARDED_BY(mutex_) = false;
  std::thread thread_;
};

}  // namespace tandem::load

#endif  // TANDEM_TESTS_LOAD_STATS_POLLER_H_
