// ChildReports: a pipe on which a child process says how far it is, a byte for each thing.
// Processes that follow each other may share it.
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

  // Of a file that children of this user write to. A write to it never blocks them for long: what
  // nobody waits for stays in the pipe.
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
