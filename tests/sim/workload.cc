#include "tests/sim/workload.h"

#include <algorithm>
#include <string>
#include <utility>

#include "tests/coordinator/grammar/bracket_grammar.h"
#include "tests/sim/violation.h"

namespace tandem::sim {

using coordinator::EngineLoop;
using std::chrono::microseconds;
using std::chrono::milliseconds;

Workload::Workload(EventClock& clock, Random& random, const Scenario& scenario,
                   Circumstances& circumstances)
    : clock_(clock),
      random_(random),
      scenario_(scenario),
      circumstances_(circumstances),
      grammar_(coordinator::grammar::BracketGrammar(scenario.model.vocab_size)) {
  for (int i = 0; i < 3; ++i) {
    roots_.emplace_back(scenario.engine.scheduler.max_model_len);
    for (TokenId& token : roots_.back()) {
      token = static_cast<TokenId>(random_.Below(scenario.model.vocab_size));
    }
  }
}

void Workload::Start(EngineLoop& engine) {
  engine_ = &engine;
  NextArrival();
  NextWrite();
}

void Workload::NextArrival() {
  // While the queue is full few come: a run is long in steps, not in refusals.
  const int wait = in_flight_.size() >= engine_->capacity() ? 20 : 2;
  clock_.After(random_.Time(Duration{}, wait * scenario_.arrival_gap), [this] {
    if (over_) return;
    const uint64_t burst = random_.Chance(0.1) ? random_.Between(2, 12) : 1;
    if (burst > 1 && random_.Chance(0.5)) storm_ = &roots_[random_.Below(roots_.size())];
    for (uint64_t i = 0; i < burst; ++i) Arrive();
    storm_ = nullptr;
    NextArrival();
  });
}

void Workload::NextWrite() {
  const bool late = random_.Chance(0.02);
  clock_.After(random_.Time(microseconds(100), late ? milliseconds(1000) : milliseconds(5)),
               [this] {
                 engine_->Write();
                 Sweep();
                 NextWrite();
               });
}

void Workload::Sweep() {
  std::erase_if(in_flight_, [](const auto& client) { return client->over(); });
}

void Workload::Arrive() {
  coordinator::Request request = DrawRequest();
  const size_t stop_after = random_.Chance(0.1) ? random_.Between(1, 10) : SIZE_MAX;
  const bool is_poison = std::ranges::count(request.prompt, scenario_.poison()) > 0;
  Expected expected =
      ExpectedOf(scenario_.model, request, scenario_.engine.scheduler.max_model_len);
  if (!is_poison && random_.Chance(0.3)) Continue(request.prompt, expected.tokens);
  auto client = std::make_shared<Client>(std::move(expected), request, stop_after, is_poison,
                                         circumstances_, clock_);
  request.stream = client;
  Sweep();
  const size_t num_in_flight = in_flight_.size();
  const auto added = engine_->Add(std::move(request));
  CheckAdd(added, client->request(), num_in_flight);
  if (!added.ok()) return;
  client->set_handle(*added);
  in_flight_.push_back(client);
  if (random_.Chance(0.15)) PlanCancel(client);
}

void Workload::Continue(const std::vector<TokenId>& prompt, const std::vector<TokenId>& answer) {
  auto at = std::ranges::copy(prompt, roots_.back().begin()).out;
  const auto room = roots_.back().end() - at;
  std::copy_n(answer.begin(), std::min(std::ssize(answer), room), at);
}

void Workload::CheckAdd(const absl::StatusOr<coordinator::RequestHandle>& added,
                        const coordinator::Request& request, size_t num_in_flight) const {
  const auto& engine = scenario_.engine;
  const uint64_t longest =
      std::min<uint64_t>(engine.scheduler.max_model_len,
                         engine.kv_cache.LongestSequence(engine.scheduler.MostStepTokens()));
  if (request.prompt.size() + request.sampling.max_tokens > longest) {
    return Require(absl::IsInvalidArgument(added.status()), "a request that can't fit is taken");
  }
  const auto state = engine_->state();
  if (state != EngineLoop::State::kServing) {
    return Require(absl::IsUnavailable(added.status()), "a request is taken after the end");
  }
  if (num_in_flight >= engine_->capacity()) {
    return Require(absl::IsResourceExhausted(added.status()), "the queue is not bounded");
  }
  RequireOk(added.status());
}

void Workload::PlanCancel(const std::shared_ptr<Client>& client) {
  clock_.After(random_.Time(Duration{}, milliseconds(random_.OneOf({1, 50, 1000}))),
               [this, client] {
                 engine_->Write();
                 engine_->Cancel(client->handle());
                 client->NoteCancelled(clock_.Now());
               });
}

coordinator::Request Workload::DrawRequest() {
  coordinator::Request request;
  request.id = std::to_string(++num_requests_);
  const uint32_t max_model_len = scenario_.engine.scheduler.max_model_len;
  const size_t prompt_len = random_.Between(1, max_model_len * 2 / 3);
  const std::vector<TokenId>& root =
      storm_ != nullptr ? *storm_ : roots_[random_.Below(roots_.size())];
  const uint32_t block_size = scenario_.engine.kv_cache.block_size;
  size_t shared = random_.Chance(0.75) ? random_.Below(prompt_len + 1) : 0;
  if (random_.Chance(0.5)) shared = shared / block_size * block_size + random_.Below(2);
  shared = std::min(storm_ != nullptr ? prompt_len - random_.Below(2) : shared, prompt_len);
  request.prompt.assign(root.begin(), root.begin() + static_cast<std::ptrdiff_t>(shared));
  while (request.prompt.size() < prompt_len) {
    request.prompt.push_back(static_cast<TokenId>(random_.Below(scenario_.model.vocab_size)));
  }
  // Blocks with the same tokens after another prefix.
  if (storm_ == nullptr && random_.Chance(0.2)) {
    request.prompt[0] = static_cast<TokenId>(random_.Below(scenario_.model.vocab_size));
  }
  request.sampling = DrawSampling(prompt_len);
  if (random_.Chance(0.1)) DrawEmbedding(request);
  if (random_.Chance(0.1)) DrawScore(request);
  if (random_.Chance(0.1)) request.cache_salt = "salt";
  if (random_.Chance(0.3)) request.priority = static_cast<int32_t>(random_.Between(0, 4)) - 2;
  if (random_.Chance(0.1)) {
    request.deadline =
        clock_.Now() + random_.Time(Duration{}, milliseconds(random_.OneOf({1, 50, 1000, 60000})));
  }
  if (scenario_.has_poison && random_.Chance(0.02)) {
    request.prompt[random_.Below(prompt_len)] = scenario_.poison();
    if (request.targets.empty()) request.sampling.prompt_logprobs.reset();
  }
  return request;
}

void Workload::DrawEmbedding(coordinator::Request& request) {
  using coordinator::Pooling;
  request.pooling = random_.OneOf({Pooling::kMean, Pooling::kCls, Pooling::kLast});
  request.sampling = {};
  request.sampling.max_tokens = 0;
}

void Workload::DrawScore(coordinator::Request& request) {
  if (request.pooling.has_value()) return;
  request.targets.resize(random_.Between(1, request.prompt.size()));
  for (TokenId& target : request.targets) {
    target = static_cast<TokenId>(random_.Below(scenario_.model.vocab_size));
  }
  request.sampling = {};
  request.sampling.max_tokens = 0;
  request.sampling.prompt_logprobs = static_cast<uint32_t>(random_.Below(4));
}

coordinator::Sampling Workload::DrawSampling(size_t prompt_len) {
  const auto below = [this](uint64_t bound) { return static_cast<uint32_t>(random_.Below(bound)); };
  coordinator::Sampling sampling;
  sampling.temperature = random_.Chance(0.5) ? 0.0f : 0.8f;
  sampling.seed = random_.Next();
  sampling.speculation = !random_.Chance(0.2);
  sampling.max_tokens = 1 + below(scenario_.engine.scheduler.max_model_len - prompt_len);
  if (random_.Chance(0.02)) sampling.max_tokens += scenario_.engine.scheduler.max_model_len;
  for (TokenId id = 0; id < static_cast<TokenId>(scenario_.model.vocab_size); ++id) {
    if (random_.Chance(0.01)) sampling.end_ids.push_back(id);
  }
  if (random_.Chance(0.3)) sampling.min_tokens = below(sampling.max_tokens + 1);
  if (random_.Chance(0.3)) DrawPenalties(sampling);
  if (random_.Chance(0.15)) {
    sampling.grammar = grammar_;
    sampling.min_tokens = 0;
    sampling.banned_sequences.clear();
  }
  if (random_.Chance(0.1)) sampling.logprobs = below(4);
  if (random_.Chance(0.1)) sampling.prompt_logprobs = below(4);
  return sampling;
}

void Workload::DrawPenalties(coordinator::Sampling& sampling) {
  const auto id = [this] {
    return static_cast<TokenId>(random_.Below(scenario_.model.vocab_size));
  };
  const auto window = [this] { return random_.OneOf({-1, 0, 1, 7, 30}); };
  if (random_.Chance(0.5)) sampling.penalties.frequency = 0.5f;
  if (random_.Chance(0.3)) sampling.penalties.presence = -0.25f;
  if (random_.Chance(0.5)) sampling.penalties.repetition = 1.25f;
  sampling.penalties.window = window();
  if (random_.Chance(0.3)) {
    sampling.penalties.dry_multiplier = 0.8f;
    sampling.penalties.dry_allowed_length = 1;
    sampling.penalties.dry_penalty_last_n = window();
    if (random_.Chance(0.5)) sampling.dry_breakers = {id()};
  }
  if (random_.Chance(0.3)) sampling.logit_bias = {{id(), 3.0f}};
  if (random_.Chance(0.3)) sampling.banned_sequences = {{id()}, {id(), id()}};
}

}  // namespace tandem::sim
