// A rendezvous of two processes over a pipe: what rank 0 puts, rank 1 gets; keys are not looked at.
#ifndef TANDEM_TESTS_WORKER_COMM_PIPE_RENDEZVOUS_H_
#define TANDEM_TESTS_WORKER_COMM_PIPE_RENDEZVOUS_H_

#include <poll.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/transport/rendezvous.h"

namespace tandem::worker {

class PipeRendezvous : public transport::Rendezvous {
 public:
  explicit PipeRendezvous(const std::array<int, 2>& pipe) : pipe_(pipe) {}

  absl::Status Put(const std::string&, const std::string& value) override {
    const auto written = write(pipe_[1], value.data(), value.size());
    if (written == static_cast<ssize_t>(value.size())) return absl::OkStatus();
    return absl::InternalError("the pipe takes no id");
  }
  absl::StatusOr<std::string> Get(const std::string& key, Deadline deadline) override {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline.Left()).count();
    pollfd waiter{.fd = pipe_[0], .events = POLLIN, .revents = 0};
    if (poll(&waiter, 1, static_cast<int>(left)) != 1) return absl::DeadlineExceededError(key);
    std::string value(4096, '\0');
    const auto got = read(pipe_[0], value.data(), value.size());
    if (got <= 0) return absl::InternalError("rank 0 is gone");
    value.resize(static_cast<size_t>(got));
    return value;
  }

 private:
  const std::array<int, 2> pipe_;
};

}  // namespace tandem::worker

#endif  // TANDEM_TESTS_WORKER_COMM_PIPE_RENDEZVOUS_H_
