// Datasets: the prompts of a load and the lengths of their answers. The same options, model and
// seed give the same requests.
#ifndef TANDEM_TESTS_LOAD_DATASET_H_
#define TANDEM_TESTS_LOAD_DATASET_H_

#include <cstdint>
#include <functional>
#include <istream>
#include <random>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "tests/load/options.h"
#include "tests/load/request.h"

namespace tandem::load {

// What a load needs to know of the model.
struct ModelFacts {
  std::string name;
  uint32_t vocab_size = 0;
  std::vector<int32_t> special_ids;  // never drawn for a prompt
};

// The number of tokens of a text.
using TokenCounter = std::function<absl::StatusOr<uint32_t>(const std::string& text)>;

// Token ids that are no special ids.
class RandomIds {
 public:
  explicit RandomIds(const ModelFacts& model) : model_(model) {}

  void Append(uint32_t count, std::mt19937_64& random, std::vector<int32_t>& ids) const;

 private:
  const ModelFacts& model_;
};

// A whole number in [length * (1 - ratio), length * (1 + ratio)], rounded outwards, at least 1.
uint32_t DrawLength(uint32_t length, double ratio, std::mt19937_64& random);

std::vector<LoadRequest> RandomDataset(const DatasetOptions& options, const ModelFacts& model,
                                       std::mt19937_64& random);

// Each prefix begins the same number of prompts, or one more; shuffled.
std::vector<LoadRequest> PrefixDataset(const DatasetOptions& options, const ModelFacts& model,
                                       std::mt19937_64& random);

// The first two turns of conversations, shuffled: the first is the prompt, the second gives the
// answer's length. As in vLLM's benchmark, prompts and answers of less than 4 tokens are left out,
// and so are prompts of more than 1024 and pairs of more than 2048. INVALID_ARGUMENT for a file of
// another form, or without a usable conversation.
absl::StatusOr<std::vector<LoadRequest>> ShareGptDataset(const DatasetOptions& options,
                                                         std::istream& file,
                                                         const TokenCounter& count_tokens,
                                                         std::mt19937_64& random);

// A trace of JSON lines, in the order of the file, times from the first line's. Errors begin with
// "line N: ".
absl::StatusOr<std::vector<LoadRequest>> ReplayDataset(const DatasetOptions& options,
                                                       std::istream& file, const ModelFacts& model,
                                                       std::mt19937_64& random);

// The chosen dataset. NOT_FOUND if its file cannot be opened; its errors name the file.
absl::StatusOr<std::vector<LoadRequest>> MakeDataset(const DatasetOptions& options,
                                                     const ModelFacts& model,
                                                     const TokenCounter& count_tokens,
                                                     std::mt19937_64& random);

// Makes a fraction of the requests cancel, somewhere in their answer, and another read slowly.
// REQUIRES: the fractions are at least 0, together at most 1.
void AssignClients(double cancel_fraction, double slow_fraction, std::mt19937_64& random,
                   std::vector<LoadRequest>& requests);

}  // namespace tandem::load

#endif  // TANDEM_TESTS_LOAD_DATASET_H_
