#include "tests/sim/expected.h"

#include <algorithm>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "tests/coordinator/engine/naive_adjustments.h"

namespace tandem::sim {
namespace {

using coordinator::FinishReason;
using coordinator::Pooling;
using coordinator::Sampling;
using coordinator::SimulatedModel;

// The model's state after each token, which depends on all tokens before it that a window shows.
class States {
 public:
  explicit States(const SimulatedModel& model) : model_(model), kv_(model.window_tokens.size()) {}

  uint64_t Next(TokenId token) {
    uint64_t state = coordinator::kSimulatedSeed;
    for (size_t group = 0; group < kv_.size(); ++group) {
      uint64_t context = coordinator::kSimulatedSeed;
      for (uint32_t p = model_.FirstRead(group, position_); p < position_; ++p) {
        context = coordinator::SimulatedMix(context, kv_[group][p]);
      }
      kv_[group].push_back(coordinator::SimulatedKv(context, token, position_, group));
      state = coordinator::SimulatedMix(state, kv_[group].back());
    }
    ++position_;
    if (!model_.recurrent) return state;
    recurrent_ = coordinator::SimulatedMix(recurrent_, static_cast<uint64_t>(token));
    return coordinator::SimulatedMix(state, recurrent_);
  }

 private:
  const SimulatedModel& model_;
  std::vector<std::vector<uint64_t>> kv_;  // by group and position
  uint64_t recurrent_ = coordinator::kSimulatedSeed;
  uint32_t position_ = 0;
};

coordinator::TokenLogprobs Logprobs(const SimulatedModel& model, uint64_t state, TokenId token,
                                    uint32_t top_n) {
  const step::RowRequest row{
      .wants = step::kWantLogprobsOf, .top_n = top_n, .logprobs_of = {token}};
  const auto values = model.Logprobs(state, row, 0);
  return {.token = values[0], .top = {values.begin() + 1, values.end()}};
}

// What may follow the answer so far, found from its beginning on; where nothing but the end may, it
// has ended.
struct Form {
  explicit Form(const Sampling& sampling) : grammar(sampling.grammar), end_ids(sampling.end_ids) {}

  step::TokenMask AfterTokens(const std::vector<TokenId>& answer) const {
    if (grammar == nullptr) return {};
    const auto next = coordinator::grammar::Matcher(grammar).Follow(answer).value();
    step::TokenMask allowed = *next.allowed;
    for (const TokenId id : end_ids) {
      if (next.can_end) step::Insert(id, allowed);
    }
    return allowed;
  }
  bool EndsAfter(const std::vector<TokenId>& answer) const {
    if (grammar == nullptr) return false;
    return !coordinator::grammar::Matcher(grammar).Follow(answer).value().has_tokens;
  }

  const std::shared_ptr<coordinator::grammar::TokenGrammar> grammar;
  const std::vector<TokenId>& end_ids;
};

TokenId Draw(const SimulatedModel& model, uint64_t state, const Sampling& sampling,
             const std::vector<TokenId>& tokens, size_t prompt_len, step::TokenMask allowed) {
  return model.Sample(state,
                      {.temperature = sampling.temperature,
                       .seed = sampling.seed,
                       .position = tokens.size(),
                       .adjustments = coordinator::NaiveAdjustments(sampling, tokens, prompt_len),
                       .allowed = std::move(allowed)});
}

// The log-probability of each target after the tokens before it.
std::vector<coordinator::TokenLogprobs> Scores(const SimulatedModel& model,
                                               const coordinator::Request& request) {
  States states(model);
  std::vector<coordinator::TokenLogprobs> scores;
  const size_t begin = request.prompt.size() - request.targets.size();
  for (size_t i = 0; i < request.prompt.size(); ++i) {
    const uint64_t state = states.Next(request.prompt[i]);
    if (i < begin) continue;
    scores.push_back(
        Logprobs(model, state, request.targets[i - begin], *request.sampling.prompt_logprobs));
  }
  return scores;
}

std::vector<float> Embedding(const SimulatedModel& model, const coordinator::Request& request) {
  States states(model);
  const size_t last = request.prompt.size() - 1;
  const size_t begin = request.pooling == Pooling::kLast ? last : 0;
  const size_t end = request.pooling == Pooling::kCls ? 0 : last;
  std::vector<double> sum(model.hidden_size);
  for (size_t i = 0; i <= last; ++i) {
    const std::vector<float> hidden = model.Hidden(states.Next(request.prompt[i]));
    for (size_t j = 0; begin <= i && i <= end && j < sum.size(); ++j) sum[j] += hidden[j];
  }
  std::vector<float> mean;
  for (const double one : sum) {
    mean.push_back(static_cast<float>(one / static_cast<double>(end - begin + 1)));
  }
  return mean;
}

}  // namespace

Expected ExpectedOf(const SimulatedModel& model, const coordinator::Request& request,
                    uint32_t max_model_len) {
  const Sampling& sampling = request.sampling;
  Expected expected;
  if (!request.generates()) {
    expected.reason = FinishReason::kLength;
    if (request.pooling.has_value()) expected.embedding = Embedding(model, request);
    if (!request.targets.empty()) expected.prompt_logprobs = Scores(model, request);
    return expected;
  }
  States states(model);
  uint64_t state = 0;
  for (size_t i = 0; i < request.prompt.size(); ++i) {
    state = states.Next(request.prompt[i]);
    if (!sampling.prompt_logprobs.has_value() || i + 1 == request.prompt.size()) continue;
    expected.prompt_logprobs.push_back(
        Logprobs(model, state, request.prompt[i + 1], *sampling.prompt_logprobs));
  }
  std::vector<TokenId> tokens = request.prompt;
  const Form form(sampling);
  while (expected.reason == FinishReason::kNone) {
    const size_t length = request.prompt.size() + expected.tokens.size();
    const TokenId token = Draw(model, state, sampling, tokens, request.prompt.size(),
                               form.AfterTokens(expected.tokens));
    expected.tokens.push_back(token);
    tokens.push_back(token);
    if (sampling.logprobs.has_value()) {
      expected.logprobs.push_back(Logprobs(model, state, token, *sampling.logprobs));
    }
    if (std::ranges::count(sampling.end_ids, token) > 0 || form.EndsAfter(expected.tokens)) {
      expected.reason = FinishReason::kStop;
    } else if (expected.tokens.size() >= sampling.max_tokens || length + 1 >= max_model_len) {
      expected.reason = FinishReason::kLength;
    } else {
      state = states.Next(token);
    }
  }
  return expected;
}

}  // namespace tandem::sim
