#include "tests/load/stats_poller.h"

#include <chrono>
#include <utility>

namespace tandem::load {
namespace {

constexpr Duration kTimeout = std::chrono::seconds(30);  // of one look

}  // namespace

StatsPoller::StatsPoller(Backend& backend, TimePoint start, Duration interval)
    : backend_(backend), start_(start), interval_(interval), thread_([this] { Poll(); }) {}

StatsPoller::~StatsPoller() {
  if (thread_.joinable()) StopPolling();
}

void StatsPoller::StopPolling() {
  {
    MutexLock lock(mutex_);
    stop_ = true;
    changed_.NotifyAll();
  }
  thread_.join();
}

std::vector<StatsPoint> StatsPoller::Finish() {
  StopPolling();
  return std::move(points_);
}

void StatsPoller::Poll() {
  // At once, even if it is to stop already: a short run has a point, too.
  TimePoint next = Clock::System().Now();
  while (true) {
    const TimePoint now = Clock::System().Now();
    auto point = backend_.Stats(Deadline::After(kTimeout));
    if (absl::IsUnimplemented(point.status())) return;
    if (point.ok()) {
      point->at_s = std::chrono::duration<double>(now - start_).count();
      points_.push_back(*point);
    }
    next += interval_;
    MutexLock lock(mutex_);
    const auto stopped = [this]() TANDEM_REQUIRES(mutex_) { return stop_; };
    if (changed_.Wait(lock, Deadline::At(next), stopped)) return;
  }
}

}  // namespace tandem::load
