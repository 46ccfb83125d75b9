#include "tests/load/dataset.h"

#include <algorithm>
#include <cmath>
#include <fstream>
#include <numeric>

#include "absl/strings/str_cat.h"
#include "common/base/status.h"

namespace tandem::load {
namespace {

LoadRequest Request(std::vector<int32_t> prompt, uint32_t output_tokens) {
  LoadRequest request;
  request.prompt_tokens = static_cast<uint32_t>(prompt.size());
  request.token_ids = std::move(prompt);
  request.output_tokens = output_tokens;
  return request;
}

absl::StatusOr<std::vector<LoadRequest>> FileDataset(const DatasetOptions& options,
                                                     const ModelFacts& model,
                                                     const TokenCounter& count_tokens,
                                                     std::mt19937_64& random) {
  std::ifstream file(options.path, std::ios::binary);
  if (!file) return absl::NotFoundError(absl::StrCat(options.path, ": cannot be opened"));
  auto requests = options.name == DatasetKind::kShareGpt
                      ? ShareGptDataset(options, file, count_tokens, random)
                      : ReplayDataset(options, file, model, random);
  if (!requests.ok()) return Annotate(requests.status(), options.path);
  return requests;
}

}  // namespace

void RandomIds::Append(uint32_t count, std::mt19937_64& random, std::vector<int32_t>& ids) const {
  std::uniform_int_distribution<int32_t> any(0, static_cast<int32_t>(model_.vocab_size) - 1);
  const auto& special = model_.special_ids;
  while (count > 0) {
    const int32_t id = any(random);
    // A vocabulary of special ids only is taken as it is.
    const bool skip = special.size() < model_.vocab_size &&
                      std::find(special.begin(), special.end(), id) != special.end();
    if (skip) continue;
    ids.push_back(id);
    --count;
  }
}

uint32_t DrawLength(uint32_t length, double ratio, std::mt19937_64& random) {
  const double least = std::max(1.0, std::floor(length * (1 - ratio)));
  const double most = std::max(least, std::ceil(length * (1 + ratio)));
  return std::uniform_int_distribution<uint32_t>(static_cast<uint32_t>(least),
                                                 static_cast<uint32_t>(most))(random);
}

std::vector<LoadRequest> RandomDataset(const DatasetOptions& options, const ModelFacts& model,
                                       std::mt19937_64& random) {
  const RandomIds ids(model);
  std::vector<LoadRequest> requests;
  for (uint32_t i = 0; i < options.num_prompts; ++i) {
    std::vector<int32_t> prompt;
    ids.Append(DrawLength(options.random_input_len, options.random_range_ratio, random), random,
               prompt);
    requests.push_back(Request(std::move(prompt), DrawLength(options.random_output_len,
                                                             options.random_range_ratio, random)));
  }
  return requests;
}

std::vector<LoadRequest> PrefixDataset(const DatasetOptions& options, const ModelFacts& model,
                                       std::mt19937_64& random) {
  const RandomIds ids(model);
  std::vector<std::vector<int32_t>> prefixes(options.num_prefixes);
  for (auto& prefix : prefixes) ids.Append(options.prefix_len, random, prefix);
  std::vector<LoadRequest> requests;
  for (uint32_t i = 0; i < options.num_prompts; ++i) {
    std::vector<int32_t> prompt = prefixes[i % prefixes.size()];
    ids.Append(options.suffix_len, random, prompt);
    requests.push_back(Request(std::move(prompt), options.prefix_output_len));
  }
  std::shuffle(requests.begin(), requests.end(), random);
  return requests;
}

absl::StatusOr<std::vector<LoadRequest>> MakeDataset(const DatasetOptions& options,
                                                     const ModelFacts& model,
                                                     const TokenCounter& count_tokens,
                                                     std::mt19937_64& random) {
  switch (options.name) {
    case DatasetKind::kRandom:
      return RandomDataset(options, model, random);
    case DatasetKind::kPrefix:
      return PrefixDataset(options, model, random);
    case DatasetKind::kShareGpt:
    case DatasetKind::kReplay:
      break;
  }
  return FileDataset(options, model, count_tokens, random);
}

void AssignClients(double cancel_fraction, double slow_fraction, std::mt19937_64& random,
                   std::vector<LoadRequest>& requests) {
  std::vector<size_t> order(requests.size());
  std::iota(order.begin(), order.end(), 0);
  std::shuffle(order.begin(), order.end(), random);
  const auto part = [&](double fraction) {
    return static_cast<size_t>(std::lround(fraction * static_cast<double>(requests.size())));
  };
  const size_t cancelled = part(cancel_fraction);
  const size_t slow = std::min(part(slow_fraction), requests.size() - cancelled);
  for (size_t i = 0; i < cancelled; ++i) {
    LoadRequest& request = requests[order[i]];
    request.cancel_after_messages =
        std::uniform_int_distribution<uint32_t>(1, std::max(request.output_tokens - 1, 1u))(random);
  }
  for (size_t i = 0; i < slow; ++i) requests[order[cancelled + i]].slow_reader = true;
}

}  // namespace tandem::load
