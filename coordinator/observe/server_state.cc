#include "coordinator/observe/server_state.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"

namespace tandem::coordinator {
namespace {

using Phase = ServerView::Phase;
using Stage = RankProgress::Stage;

size_t NumIn(const std::vector<RankProgress>& ranks, Stage stage) {
  return static_cast<size_t>(
      std::ranges::count_if(ranks, [stage](const auto& rank) { return rank.stage == stage; }));
}

// How far workers are that are being brought up: none of the later phases.
Phase BringPhase(const std::vector<RankProgress>& ranks) {
  const size_t num_missing = NumIn(ranks, Stage::kMissing);
  if (num_missing > 0) return Phase::kWaiting;
  return NumIn(ranks, Stage::kReady) == ranks.size() ? Phase::kReady : Phase::kLoading;
}

// The mean over the ranks of the share of its weights that each has loaded, in percent. A rank that
// is ready counts as loaded in full.
int PercentLoaded(const std::vector<RankProgress>& ranks) {
  double done = 0;
  for (const RankProgress& rank : ranks) {
    if (rank.stage == Stage::kReady) done += 1;
    if (rank.stage != Stage::kLoading || rank.total_bytes == 0) continue;
    done += static_cast<double>(rank.done_bytes) / static_cast<double>(rank.total_bytes);
  }
  return static_cast<int>(100 * done / static_cast<double>(ranks.size()));
}

std::string BringText(const std::vector<RankProgress>& ranks) {
  switch (BringPhase(ranks)) {
    case Phase::kWaiting:
      return absl::StrCat("waiting for ranks ", ranks.size() - NumIn(ranks, Stage::kMissing), "/",
                          ranks.size());
    case Phase::kLoading:
      return absl::StrCat("loading ", PercentLoaded(ranks), "%");
    default:
      return "starting";
  }
}

}  // namespace

const char* NameOf(Phase phase) {
  switch (phase) {
    case Phase::kStarting:
      return "starting";
    case Phase::kWaiting:
      return "waiting";
    case Phase::kLoading:
      return "loading";
    case Phase::kReady:
      return "ready";
    case Phase::kRecovering:
      return "recovering";
    case Phase::kDraining:
      return "draining";
    case Phase::kBroken:
      return "broken";
  }
  return "?";
}

const char* NameOf(Stage stage) {
  switch (stage) {
    case Stage::kMissing:
      return "missing";
    case Stage::kConnected:
      return "connected";
    case Stage::kLoading:
      return "loading";
    case Stage::kReady:
      return "ready";
  }
  return "?";
}

Phase ServerView::phase() const {
  if (broken) return Phase::kBroken;
  if (draining) return Phase::kDraining;
  if (recovering) return Phase::kRecovering;
  if (started) return Phase::kReady;
  const Phase bring = BringPhase(ranks);
  return bring == Phase::kReady ? Phase::kStarting : bring;
}

std::string ServerView::Text() const {
  const Phase now = phase();
  const std::string stuck_text = stuck ? " (the engine gives no sign of life)" : "";
  if (now == Phase::kRecovering) {
    return absl::StrCat("recovering: ", BringText(ranks), stuck_text);
  }
  if (now == Phase::kWaiting || now == Phase::kLoading) return BringText(ranks);
  return absl::StrCat(NameOf(now), stuck_text);
}

ServerView ServerState::Get() const {
  MutexLock lock(mutex_);
  return view_;
}

void ServerState::SetListener(Listener listener) {
  MutexLock lock(mutex_);
  listener_ = std::move(listener);
  Notify();
}

void ServerState::Notify() {
  if (listener_) listener_(view_);
}

template <typename T>
void ServerState::Set(T ServerView::*member, T value) {
  MutexLock lock(mutex_);
  if (view_.*member == value) return;
  view_.*member = value;
  Notify();
}

void ServerState::SetStarted() { Set(&ServerView::started, true); }
void ServerState::SetRecovering(bool recovering) { Set(&ServerView::recovering, recovering); }
void ServerState::SetDraining() { Set(&ServerView::draining, true); }
void ServerState::SetStuck(bool stuck) { Set(&ServerView::stuck, stuck); }
void ServerState::SetBroken() { Set(&ServerView::broken, true); }

void ServerState::SetProgress(size_t rank, const RankProgress& progress) {
  MutexLock lock(mutex_);
  if (view_.ranks[rank] == progress) return;
  view_.ranks[rank] = progress;
  Notify();
}

}  // namespace tandem::coordinator
