// ControlStream: a worker's simulated control stream to the coordinator's WorkerRegistry: messages
// arrive in order, after a delay, and may be held up, doubled or cut off. Ends like the gRPC
// stream.
#ifndef TANDEM_TESTS_SIM_CONTROL_STREAM_H_
#define TANDEM_TESTS_SIM_CONTROL_STREAM_H_

#include <functional>
#include <memory>

#include "common/base/event_clock.h"
#include "coordinator/cluster/worker_registry.h"
#include "tests/sim/harm.h"
#include "tests/sim/random.h"

namespace tandem::sim {

class ControlStream : public std::enable_shared_from_this<ControlStream> {
 public:
  // The network between the coordinator and all workers. Outlives the streams.
  struct Network {
    EventClock& clock;
    Random& random;
    coordinator::WorkerRegistry& registry;
    Harm& harm;
    Duration most_delay;
    bool one_host;  // workers are the coordinator's children
  };
  struct Worker {
    std::function<void(v1::CoordinatorMessage)> take;
    std::function<void()> closed;  // by the network
  };

  ControlStream(const Network& network, Worker worker)
      : network_(network), worker_(std::move(worker)) {}

  // Connects; the coordinator's Refused, if any, arrives like other messages.
  void Open(v1::Hello hello);
  void Send(v1::WorkerMessage message);
  // The worker's process has ended: the coordinator sees it after what was sent before, or, if both
  // run on one host, at once.
  void Close();

  // Nothing arrives for a while, in either direction; a stream that is held up for too long ends.
  void HoldUp(Duration time);
  // The worker's next message arrives twice.
  void DoubleNext() { double_next_ = true; }
  bool open() const { return link_ != nullptr; }

 private:
  // When a message that is sent now arrives: never before the one sent last.
  TimePoint Arrival(TimePoint& last);
  absl::Status ToWorker(v1::CoordinatorMessage message);
  // By the coordinator.
  void Cancel();
  void End();

  const Network network_;
  const Worker worker_;
  std::shared_ptr<coordinator::WorkerLink> link_;  // null before Open and after the end
  TimePoint last_up_{}, last_down_{};              // arrivals
  TimePoint held_until_{};
  size_t num_down_ = 0;  // messages on their way to the worker
  bool double_next_ = false;
  bool closed_by_worker_ = false;
};

}  // namespace tandem::sim

#endif  // TANDEM_TESTS_SIM_CONTROL_STREAM_H_
