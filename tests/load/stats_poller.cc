#include "tests/load/stats_poller.h"

#include <chrono>
#include <utility>

namespace tandem::load {
namespace {

constexpr Duration kTimeout = std::chrono::seconds(2);  // of one look

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
  for (TimePoint next = Clock::System().Now();; next += interval_) {
    {
      MutexLock lock(mutex_);
      const auto stopped = [this]() TANDEM_REQUIRES(mutex_) { return stop_; };
      if (changed_.Wait(lock, Deadline::At(next), stopped)) return;
    }
    const TimePoint now = Clock::System().Now();
    auto point = backend_.Stats(Deadline::After(kTimeout));
    if (absl::IsUnimplemented(point.status())) return;
    if (!point.ok()) continue;
    point->at_s = std::chrono::duration<double>(now - start_).count();
    points_.push_back(*point);
  }
}

}  // namespace tandem::load
