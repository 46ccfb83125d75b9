// Host streams for tests of communicators: one that keeps what is enqueued until it is run, and one
// that runs it at once.
#ifndef TANDEM_TESTS_CONTRACT_HOST_STREAMS_H_
#define TANDEM_TESTS_CONTRACT_HOST_STREAMS_H_

#include <functional>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "common/base/clock.h"
#include "kernels/backend.h"

namespace tandem::kernels {

class ListStream : public HostStream {
 public:
  void Enqueue(std::function<absl::Status(Deadline)> work) override {
    list_.push_back(std::move(work));
  }
  // Runs and forgets the list; the first error ends it.
  absl::Status Run(Deadline deadline) {
    const auto list = std::exchange(list_, {});
    for (const auto& work : list) {
      if (absl::Status status = work(deadline); !status.ok()) return status;
    }
    return absl::OkStatus();
  }

 private:
  std::vector<std::function<absl::Status(Deadline)>> list_;
};

class InlineStream : public HostStream {
 public:
  void Enqueue(std::function<absl::Status(Deadline)> work) override {
    if (status_.ok()) status_ = work(Deadline::After(std::chrono::seconds(60)));
  }
  // The first error.
  const absl::Status& status() const { return status_; }

 private:
  absl::Status status_;
};

}  // namespace tandem::kernels

#endif  // TANDEM_TESTS_CONTRACT_HOST_STREAMS_H_
