#include "tests/sim/control_stream.h"

#include <algorithm>
#include <utility>

#include "common/rpc/keepalive.h"

namespace tandem::sim {
namespace {

// As the gRPC stream's: a worker that does not read its messages is disconnected.
constexpr size_t kMaxPendingWrites = 256;
// HTTP/2 pings end a silent connection.
constexpr auto kKeepalive =
    std::chrono::milliseconds(kControlKeepalive.interval_millis + kControlKeepalive.answer_millis);

}  // namespace

TimePoint ControlStream::Arrival(TimePoint& last) {
  const Duration delay = network_.random.Time(std::chrono::microseconds(20), network_.most_delay);
  last = std::max({last, network_.clock.Now() + delay, held_until_});
  return last;
}

void ControlStream::Open(v1::Hello hello) {
  auto link = std::make_shared<coordinator::WorkerLink>(
      std::move(hello),
      [stream = weak_from_this()](v1::CoordinatorMessage message) {
        const auto open = stream.lock();
        if (open == nullptr) return absl::UnavailableError("control connection lost");
        return open->ToWorker(std::move(message));
      },
      [stream = weak_from_this()] {
        if (const auto open = stream.lock()) open->Cancel();
      });
  network_.clock.At(Arrival(last_up_), [this, self = shared_from_this(), link] {
    if (closed_by_worker_) return;
    const absl::Status admitted = network_.registry.Admit(link);
    if (admitted.ok()) {
      link_ = link;
      return;
    }
    v1::CoordinatorMessage refusal;
    refusal.mutable_refused()->set_reason(std::string(admitted.message()));
    network_.clock.At(Arrival(last_down_), [this, self, refusal] { worker_.take(refusal); });
  });
}

void ControlStream::Send(v1::WorkerMessage message) {
  const int copies = std::exchange(double_next_, false) ? 2 : 1;
  for (int i = 0; i < copies; ++i) {
    network_.clock.At(Arrival(last_up_), [this, self = shared_from_this(), message] {
      if (link_ != nullptr) network_.registry.Handle(link_, message);
    });
  }
  if (copies > 1) network_.harm.Note(last_up_);
}

absl::Status ControlStream::ToWorker(v1::CoordinatorMessage message) {
  if (num_down_ >= kMaxPendingWrites) {
    return absl::UnavailableError("worker does not read its control connection");
  }
  ++num_down_;
  network_.clock.At(Arrival(last_down_), [this, self = shared_from_this(), message] {
    --num_down_;
    if (!closed_by_worker_) worker_.take(message);
  });
  return absl::OkStatus();
}

void ControlStream::Close() {
  if (std::exchange(closed_by_worker_, true)) return;
  const TimePoint end =
      network_.one_host ? network_.clock.Now() + network_.most_delay : Arrival(last_up_);
  network_.clock.At(end, [this, self = shared_from_this()] { End(); });
}

void ControlStream::Cancel() {
  network_.clock.After(network_.random.Time(Duration::zero(), network_.most_delay),
                       [self = shared_from_this()] { self->End(); });
  network_.clock.At(Arrival(last_down_), [this, self = shared_from_this()] {
    if (!closed_by_worker_) worker_.closed();
  });
}

void ControlStream::HoldUp(Duration time) {
  const TimePoint begin = network_.clock.Now();
  held_until_ = std::max(held_until_, begin + time);
  network_.harm.Note(held_until_ + network_.most_delay);
  network_.clock.After(std::min<Duration>(time, kKeepalive),
                       [this, self = shared_from_this(), time] {
                         if (time < kKeepalive || link_ == nullptr) return;
                         End();
                         if (!closed_by_worker_) worker_.closed();
                       });
}

void ControlStream::End() {
  if (link_ == nullptr) return;
  const auto link = std::exchange(link_, nullptr);
  network_.harm.Note(network_.clock.Now());
  link->CloseFromStream(absl::UnavailableError("control connection lost"));
  network_.registry.Release(link);
}

}  // namespace tandem::sim
