#include "tests/load/load_run.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/check.h"

namespace tandem::load {
namespace {

constexpr Duration kAnswerTimeout = std::chrono::seconds(5);  // of a server that is suspected
constexpr Duration kCancelTimeout = std::chrono::seconds(30);
// More than a backend needs to end a request whose time is over.
constexpr Duration kGrace = std::chrono::seconds(30);

bool MayBeTheServer(const absl::Status& status) {
  return absl::IsUnavailable(status) || absl::IsDeadlineExceeded(status);
}

}  // namespace

LoadRun::LoadRun(Backend& backend, const std::vector<LoadRequest>& requests,
                 const RunSettings& settings)
    : backend_(backend), requests_(requests), settings_(settings) {
  TANDEM_CHECK(settings.times_s.empty() || settings.times_s.size() == requests.size());
}

LoadRun::~LoadRun() = default;

double LoadRun::Now() const {
  return std::chrono::duration<double>(Clock::System().Now() - start_).count();
}

RunProgress LoadRun::Progress() const {
  MutexLock lock(mutex_);
  return {ended_, in_flight_, tokens_.load(std::memory_order_relaxed), Now()};
}

void LoadRun::Stop() {
  MutexLock lock(mutex_);
  stop_ = true;
  changed_.NotifyAll();
}

void LoadRun::OnRequestTokens(uint32_t num_tokens) {
  tokens_.fetch_add(num_tokens, std::memory_order_relaxed);
}

void LoadRun::OnRequestEnd(const absl::Status& status) {
  MutexLock lock(mutex_);
  --in_flight_;
  ++ended_;
  if (MayBeTheServer(status)) suspicion_ = status;
  changed_.NotifyAll();  // under the lock: the run may be destroyed right after
}

bool LoadRun::ServerIsLost() {
  std::optional<absl::Status> suspicion;
  {
    MutexLock lock(mutex_);
    suspicion.swap(suspicion_);
  }
  if (!suspicion.has_value() || backend_.Model(Deadline::After(kAnswerTimeout)).ok()) return false;
  end_ = RunEnd::kServerLost;
  end_reason_ = absl::StrCat("the server is lost: ", suspicion->message());
  return true;
}

template <typename Ready>
bool LoadRun::Await(Deadline deadline, Ready ready) {
  for (;;) {
    {
      MutexLock lock(mutex_);
      changed_.Wait(lock, deadline, [&]() TANDEM_REQUIRES(mutex_) {
        return stop_ || suspicion_.has_value() || ready();
      });
      if (stop_) {
        end_ = RunEnd::kInterrupted;
        end_reason_ = "interrupted";
        return false;
      }
      if (!suspicion_.has_value()) return true;
    }
    if (ServerIsLost()) return false;
  }
}

void LoadRun::Send(const LoadRequest& request, double intended_s) {
  SampleRecorder& recorder = recorders_.emplace_back(*this, request, intended_s);
  {
    MutexLock lock(mutex_);
    ++in_flight_;
  }
  backend_.Start(request, recorder);
}

bool LoadRun::SendAll() {
  const TimePoint last = start_ + settings_.max_duration;
  for (size_t i = 0; i < requests_.size(); ++i) {
    const bool timed = !settings_.times_s.empty();
    const double at_s = timed ? settings_.times_s[i] : 0;
    const TimePoint when = start_ + FromSeconds(at_s);
    if (std::max(when, Clock::System().Now()) > last) break;
    if (!Await(Deadline::At(when), [] { return false; })) return false;
    if (settings_.max_concurrency.has_value()) {
      const bool in_time = Await(
          Deadline::At(last).OrAfter(settings_.request_timeout + kGrace),
          [this]() TANDEM_REQUIRES(mutex_) { return in_flight_ < *settings_.max_concurrency; });
      if (!in_time) return false;
      if (Clock::System().Now() > last) break;
    }
    Send(requests_[i], settings_.closed_loop() ? Now() : at_s);
  }
  return true;
}

RunRecord LoadRun::Run() {
  const auto all_ended = [this]() TANDEM_REQUIRES(mutex_) { return in_flight_ == 0; };
  if (SendAll()) Await(Deadline::After(settings_.request_timeout + kGrace), all_ended);
  backend_.CancelAll();  // those in flight after an early end
  {
    MutexLock lock(mutex_);
    TANDEM_CHECK(changed_.Wait(lock, Deadline::After(kCancelTimeout), all_ended))
        << in_flight_ << " requests do not end";
  }
  RunRecord record;
  record.end = end_;
  record.end_reason = end_reason_;
  record.max_concurrency = settings_.max_concurrency;
  CollectSamples(recorders_, requests_.size(), record);
  return record;
}

}  // namespace tandem::load
