// ProgressBar: a line on stderr that follows a run, if stderr is a terminal.
#ifndef TANDEM_TESTS_LOAD_PROGRESS_BAR_H_
#define TANDEM_TESTS_LOAD_PROGRESS_BAR_H_

#include <cstdint>
#include <string>
#include <thread>

#include "common/base/mutex.h"
#include "tests/load/load_run.h"

namespace tandem::load {

// "[####------] 40/100, 16 in flight, 1234 tokens/s, 12 s".
std::string ProgressLine(const RunProgress& progress, uint64_t num_requests);

class ProgressBar {
 public:
  // `run` must outlive this. Draws nothing unless `wanted` and stderr is a terminal.
  ProgressBar(const LoadRun& run, uint64_t num_requests, bool wanted);
  ~ProgressBar();

 private:
  void Draw();

  const LoadRun& run_;
  const uint64_t num_requests_;
  Mutex mutex_;
  CondVar changed_;
  bool stop_ TANDEM_GUARDED_BY(mutex_) = false;
  std::thread thread_;
};

}  // namespace tandem::load

#endif  // TANDEM_TESTS_LOAD_PROGRESS_BAR_H_
