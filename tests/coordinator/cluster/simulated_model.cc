#include "tests/coordinator/cluster/simulated_model.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <numeric>
#include <set>

namespace tandem::coordinator {

uint64_t SimulatedMix(uint64_t state, uint64_t value) {
  // The finaliser of splitmix64 (Steele, Lea, Flood 2014).
  uint64_t x = (state ^ value) + 0x9e3779b97f4a7c15u * (value + 1);
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
  return x ^ (x >> 31);
}

uint64_t SimulatedKv(uint64_t context, TokenId token, uint32_t position, size_t group) {
  return SimulatedMix(SimulatedMix(SimulatedMix(context, static_cast<uint64_t>(token)), position),
                      group);
}

TokenId SimulatedModel::Sample(uint64_t state, const step::RowSampling& sampling) const {
  if (sampling.temperature > 0) {
    state = SimulatedMix(SimulatedMix(state, sampling.seed), sampling.position);
  }
  std::set<TokenId> banned;
  for (const step::LogitAdjustment& one : sampling.adjustments) {
    if (std::isinf(one.bias)) {
      banned.insert(one.id);
      continue;
    }
    state = SimulatedMix(state, static_cast<uint64_t>(one.id));
    for (const float value : {one.bias, one.repetition, one.penalty}) {
      state = SimulatedMix(state, std::bit_cast<uint32_t>(value));
    }
  }
  const auto may_be = [&](uint32_t id) {
    const auto token = static_cast<TokenId>(id);
    return !banned.contains(token) &&
           (sampling.allowed.empty() || step::Contains(sampling.allowed, token));
  };
  const bool repeats = period > 0 && (state >> 32) % 16 != 0;
  uint32_t token =
      static_cast<uint32_t>((repeats ? sampling.position % period : state) % vocab_size);
  for (uint32_t tries = 0; tries < vocab_size; ++tries) {
    if (may_be(token)) break;
    token = (token + 1) % vocab_size;
  }
  return static_cast<TokenId>(token);
}

TokenId SimulatedModel::Guess(uint64_t position) const {
  return static_cast<TokenId>(period == 0 ? 0 : position % period % vocab_size);
}

std::vector<float> SimulatedModel::Logits(uint64_t state) const {
  std::vector<float> logits(vocab_size);
  for (uint32_t i = 0; i < vocab_size; ++i) {
    logits[i] = static_cast<float>(SimulatedMix(state, i) >> 40) * 0x1p-24f;
  }
  logits[state % vocab_size] = 1.0f;
  return logits;
}

std::vector<float> SimulatedModel::Hidden(uint64_t state) const {
  std::vector<float> hidden(hidden_size);
  for (uint32_t i = 0; i < hidden_size; ++i) {
    const uint64_t bits = SimulatedMix(SimulatedMix(state, vocab_size), i) >> 40;
    hidden[i] = static_cast<float>(bits) * 0x1p-23f - 1;
  }
  return hidden;
}

std::vector<step::TokenLogprob> SimulatedModel::Logprobs(uint64_t state,
                                                         const step::RowRequest& row,
                                                         TokenId sampled) const {
  const std::vector<float> logits = Logits(state);
  double sum = 0;
  for (float logit : logits) sum += std::exp(double{logit});
  const auto of = [&](TokenId token) -> step::TokenLogprob {
    const float logit = logits[static_cast<size_t>(token)];
    const auto larger = std::ranges::count_if(logits, [&](float other) { return other > logit; });
    return {.token = token,
            .logprob = static_cast<float>(logit - std::log(sum)),
            .rank = static_cast<uint32_t>(larger) + 1};
  };
  std::vector<step::TokenLogprob> logprobs;
  if (row.wants & step::kWantSampleLogprob) logprobs.push_back(of(sampled));
  for (TokenId token : row.logprobs_of) logprobs.push_back(of(token));
  std::vector<TokenId> ids(vocab_size);
  std::iota(ids.begin(), ids.end(), 0);
  std::ranges::stable_sort(ids, [&](TokenId a, TokenId b) { return logits[a] > logits[b]; });
  for (uint32_t i = 0; i < row.top_n; ++i) logprobs.push_back(of(ids[i]));
  return logprobs;
}

}  // namespace tandem::coordinator
