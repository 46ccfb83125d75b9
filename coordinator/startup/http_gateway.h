// HttpGateway: tandem_gateway as a child process that serves HTTP in front of this server.
//
// The kernel ends the child when this process ends; if the child ends first, or gives no sign of
// life, it is started again after a pause. Its event loop reports one each second (ChildReports),
// which needs neither certificate nor token, as a request to its port might. Thread-safe, but for
// Wait: one thread at a time.
#ifndef TANDEM_COORDINATOR_STARTUP_HTTP_GATEWAY_H_
#define TANDEM_COORDINATOR_STARTUP_HTTP_GATEWAY_H_

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/base/clock.h"
#include "common/base/mutex.h"
#include "coordinator/startup/child_reports.h"

namespace tandem::coordinator {

class HttpGateway {
 public:
  // Starts the tandem_gateway beside this program; `flags` are its own. UNAVAILABLE if it is not
  // there, lacks packages or cannot listen: it says why on stderr. `on_up` is called with whether
  // there is a process that gives signs of life: at once, and when that changes, on any thread.
  static absl::StatusOr<std::unique_ptr<HttpGateway>> Start(const std::vector<std::string>& flags,
                                                            std::function<void(bool)> on_up);
  // Ends the process: its requests have a few seconds to finish.
  ~HttpGateway();

  enum class Stage : char {
    kListens = 'l',  // connections are taken, requests refused until it serves
    kServes = 's',   // it has found this server ready
  };
  // Until a process has come as far, or `stopped`. DEADLINE_EXCEEDED, once, ten seconds after the
  // first call for any stage, in which it may have been started again: why is on stderr. OK at once
  // after that.
  absl::Status Wait(Stage stage, const std::function<bool()>& stopped);

 private:
  HttpGateway(std::vector<std::string> argv, std::unique_ptr<ChildReports> reports,
              std::function<void(bool)> on_up)
      : argv_(std::move(argv)),
        reports_(std::move(reports)),
        on_up_(std::move(on_up)),
        thread_([this] { Run(); }) {}

  // Keeps a process running until Stop.
  void Run();
  // One process from its start to its end: how it ended, or that it hangs. OK after Stop.
  absl::Status RunOnce();
  bool stopped();

  const std::vector<std::string> argv_;
  const std::unique_ptr<ChildReports> reports_;
  const std::function<void(bool)> on_up_;
  std::optional<Deadline> patience_;
  bool gave_up_ = false;
  Mutex mutex_;
  CondVar stop_;
  bool stopped_ TANDEM_GUARDED_BY(mutex_) = false;
  // The kernel ends a child with the thread that started it.
  std::thread thread_;
};

}  // namespace tandem::coordinator

#endif  // TANDEM_COORDINATOR_STARTUP_HTTP_GATEWAY_H_
