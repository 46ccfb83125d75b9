// Workload: clients that come at random, with prompts that share beginnings; cancel, stop, read
// late, and ask for what they can't have.
#ifndef TANDEM_TESTS_SIM_WORKLOAD_H_
#define TANDEM_TESTS_SIM_WORKLOAD_H_

#include <memory>
#include <vector>

#include "common/base/event_clock.h"
#include "coordinator/engine/engine_loop.h"
#include "tests/sim/client.h"
#include "tests/sim/scenario.h"

namespace tandem::sim {

class Workload {
 public:
  Workload(EventClock& clock, Random& random, const Scenario& scenario,
           Circumstances& circumstances);

  // Clients come until End; updates are passed to streams at random moments, for ever.
  void Start(coordinator::EngineLoop& engine);
  void End() { over_ = true; }

  // Those whose stream has not ended, oldest first.
  const std::vector<std::shared_ptr<Client>>& in_flight() const { return in_flight_; }
  // Forgets those that are over.
  void Sweep();
  uint64_t num_requests() const { return num_requests_; }

 private:
  void NextArrival();
  void NextWrite();
  void Arrive();
  coordinator::Request DrawRequest();
  coordinator::Sampling DrawSampling(size_t prompt_len);
  void DrawPenalties(coordinator::Sampling& sampling);
  void DrawEmbedding(coordinator::Request& request);
  void DrawScore(coordinator::Request& request);
  void CheckAdd(const absl::StatusOr<coordinator::RequestHandle>& added,
                const coordinator::Request& request, size_t num_in_flight) const;
  // From now on some prompts begin with this one and its answer.
  void Continue(const std::vector<TokenId>& prompt, const std::vector<TokenId>& answer);
  void PlanCancel(const std::shared_ptr<Client>& client);

  EventClock& clock_;
  Random& random_;
  const Scenario& scenario_;
  Circumstances& circumstances_;
  coordinator::EngineLoop* engine_ = nullptr;
  const std::shared_ptr<coordinator::grammar::TokenGrammar> grammar_;  // of answers with a form
  std::vector<std::vector<TokenId>> roots_;
  const std::vector<TokenId>* storm_ = nullptr;  // all that arrive now begin with it
  std::vector<std::shared_ptr<Client>> in_flight_;
  uint64_t num_requests_ = 0;
  bool over_ = false;
};

}  // namespace tandem::sim

#endif  // TANDEM_TESTS_SIM_WORKLOAD_H_
