// ServerState: what the server is doing, from its start to its end, as its health, its refusals and
// its status page tell it. The table of its states is in docs/operations.md.
//
// Thread-safe.
#ifndef TANDEM_COORDINATOR_OBSERVE_SERVER_STATE_H_
#define TANDEM_COORDINATOR_OBSERVE_SERVER_STATE_H_

#include <cstddef>
#include <functional>
#include <string>
#include <vector>

#include "common/base/mutex.h"
#include "coordinator/cluster/rank_progress.h"

namespace tandem::coordinator {

// A state as a value.
struct ServerView {
  enum class Phase { kStarting, kWaiting, kLoading, kReady, kRecovering, kDraining, kBroken };
  static constexpr Phase kPhases[] = {Phase::kStarting, Phase::kWaiting,    Phase::kLoading,
                                      Phase::kReady,    Phase::kRecovering, Phase::kDraining,
                                      Phase::kBroken};

  bool started = false;     // it has served requests
  bool recovering = false;  // workers are being replaced
  bool draining = false;    // no request is admitted any more
  bool stuck = false;       // the engine's thread gives no sign of life
  bool broken = false;      // it does not serve again
  std::vector<RankProgress> ranks;
  bool operator==(const ServerView&) const = default;

  Phase phase() const;
  // The standard health service's names "startup", "liveness" and "readiness".
  bool is_started() const { return started; }
  bool is_live() const { return !broken && !stuck; }
  bool is_ready() const { return is_live() && phase() == Phase::kReady; }
  // Requests are taken: while workers are replaced, they wait.
  bool takes_requests() const { return is_live() && started && !draining; }

  // "waiting for ranks 1/4", "loading 37%", "ready", "recovering: loading 12%".
  std::string Text() const;
};

// "starting", "waiting", ...
const char* NameOf(ServerView::Phase phase);
const char* NameOf(RankProgress::Stage stage);

class ServerState {
 public:
  using Listener = std::function<void(const ServerView&)>;

  explicit ServerState(size_t num_ranks) { view_.ranks.resize(num_ranks); }

  ServerView Get() const;
  // Called at once and at each change, in order, with a lock held: it must not call this object.
  // Null: none any more.
  void SetListener(Listener listener);

  void SetStarted();
  void SetRecovering(bool recovering);
  void SetDraining();
  void SetStuck(bool stuck);
  void SetBroken();
  // `rank` below `num_ranks`.
  void SetProgress(size_t rank, const RankProgress& progress);

 private:
  template <typename T>
  void Set(T ServerView::*member, T value);
  void Notify() TANDEM_REQUIRES(mutex_);

  mutable Mutex mutex_;
  ServerView view_ TANDEM_GUARDED_BY(mutex_);
  Listener listener_ TANDEM_GUARDED_BY(mutex_);
};

}  // namespace tandem::coordinator

#endif  // TANDEM_COORDINATOR_OBSERVE_SERVER_STATE_H_
