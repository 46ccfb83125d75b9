// ChildReports: a pipe on which a child process reports its progress, one byte per stage, and signs
// of life. A child that is started again may use the same pipe.
//
// Thread-safe.
#ifndef TANDEM_COORDINATOR_STARTUP_CHILD_REPORTS_H_
#define TANDEM_COORDINATOR_STARTUP_CHILD_REPORTS_H_

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "common/base/clock.h"
#include "common/base/mutex.h"

namespace tandem::coordinator {

class ChildReports {
 public:
  static absl::StatusOr<std::unique_ptr<ChildReports>> Create();
  ~ChildReports();

  // The pipe's writing end as a file of /proc, which children of the same user open. A child should
  // open it with O_NONBLOCK: reports are read only by Wait and Count, and the pipe may be full.
  std::string path() const;
  // Whether `report` comes, or came, before `deadline`. False soon after `stopped` is true.
  bool Wait(char report, Deadline deadline, const std::function<bool()>& stopped);
  // How often `report` has come by now. Never waits.
  uint64_t Count(char report);

 private:
  ChildReports(int read_fd, int write_fd) : read_fd_(read_fd), write_fd_(write_fd) {}

  const int read_fd_, write_fd_;
  Mutex mutex_;
  std::array<uint64_t, 256> counts_ TANDEM_GUARDED_BY(mutex_){};  // by report
};

}  // namespace tandem::coordinator

#endif  // TANDEM_COORDINATOR_STARTUP_CHILD_REPORTS_H_
