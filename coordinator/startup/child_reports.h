// ChildReports: a pipe on which a child process reports its progress, one byte per stage. A child
// that is started again may use the same pipe.
//
// One thread, but for path().
#ifndef TANDEM_COORDINATOR_STARTUP_CHILD_REPORTS_H_
#define TANDEM_COORDINATOR_STARTUP_CHILD_REPORTS_H_

#include <functional>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "common/base/clock.h"

namespace tandem::coordinator {

class ChildReports {
 public:
  static absl::StatusOr<std::unique_ptr<ChildReports>> Create();
  ~ChildReports();

  // The pipe's writing end as a file of /proc, which children of the same user open. A child should
  // open it with O_NONBLOCK: reports are read only during Wait, and the pipe may be full.
  std::string path() const;
  // Whether `report` comes, or came, before `deadline`. False soon after `stopped` is true.
  bool Wait(char report, Deadline deadline, const std::function<bool()>& stopped);

 private:
  ChildReports(int read_fd, int write_fd) : read_fd_(read_fd), write_fd_(write_fd) {}
  // What has come.
  void Read();

  const int read_fd_, write_fd_;
  std::string came_;  // each report once
};

}  // namespace tandem::coordinator

#endif  // TANDEM_COORDINATOR_STARTUP_CHILD_REPORTS_H_
