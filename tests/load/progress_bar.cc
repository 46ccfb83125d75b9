#include "tests/load/progress_bar.h"

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <iostream>

#include "absl/strings/str_format.h"

namespace tandem::load {
namespace {

constexpr Duration kInterval = std::chrono::milliseconds(250);
constexpr uint64_t kWidth = 30;
constexpr char kClearLine[] = "\r\x1b[K";

}  // namespace

std::string ProgressLine(const RunProgress& progress, uint64_t num_requests) {
  const uint64_t full =
      kWidth * std::min(progress.ended, num_requests) / std::max<uint64_t>(num_requests, 1);
  const double rate =
      progress.elapsed_s > 0 ? static_cast<double>(progress.tokens) / progress.elapsed_s : 0;
  return absl::StrFormat("[%s%s] %d/%d, %d in flight, %.0f tokens/s, %.0f s",
                         std::string(full, '#'), std::string(kWidth - full, '-'), progress.ended,
                         num_requests, progress.in_flight, rate, progress.elapsed_s);
}

ProgressBar::ProgressBar(const LoadRun& run, uint64_t num_requests, bool wanted)
    : run_(run), num_requests_(num_requests) {
  if (wanted && isatty(STDERR_FILENO) == 1) thread_ = std::thread([this] { Draw(); });
}

ProgressBar::~ProgressBar() {
  if (!thread_.joinable()) return;
  {
    MutexLock lock(mutex_);
    stop_ = true;
    changed_.NotifyAll();
  }
  thread_.join();
}

void ProgressBar::Draw() {
  const auto stopped = [this]() TANDEM_REQUIRES(mutex_) { return stop_; };
  for (;;) {
    std::cerr << kClearLine << ProgressLine(run_.Progress(), num_requests_) << std::flush;
    MutexLock lock(mutex_);
    if (changed_.Wait(lock, Deadline::After(kInterval), stopped)) break;
  }
  std::cerr << kClearLine << std::flush;
}

}  // namespace tandem::load
