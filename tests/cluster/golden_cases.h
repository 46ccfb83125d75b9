// The golden cases of tests/golden: prompts, reference logits and greedy continuations.
#ifndef TANDEM_TESTS_CLUSTER_GOLDEN_CASES_H_
#define TANDEM_TESTS_CLUSTER_GOLDEN_CASES_H_

#include <optional>
#include <string>
#include <vector>

#include "common/base/ids.h"

namespace tandem::testing {

// What the draft head of a model predicts.
struct GoldenDraft {
  std::vector<std::vector<float>> logits;  // one row per position of the case
  std::vector<TokenId> guesses;            // one after the other, from the first greedy token on
  std::vector<std::vector<float>> guess_logits;  // one row per guess
};

struct GoldenCase {
  std::vector<TokenId> tokens;
  std::vector<int> positions;              // whose logits are stored
  std::vector<std::vector<float>> logits;  // one row per position
  std::vector<TokenId> greedy;             // 32 ids
  std::optional<GoldenDraft> draft{};      // if the file has a draft head
};

struct GoldenModel {
  std::string path;
  std::string adapter{};  // path of the adapter that the cases are of; empty: of the model alone
  std::vector<GoldenCase> cases;
  double reference_rms =
      0;  // quant/models: by how much the reference engine, on this file, misses the stored logits
};

// `name` such as "llama". Fails the process' tests loudly when the files are not there.
GoldenModel ReadArchGolden(const std::string& name);
// The same model with the adapter of tests/golden/lora.
GoldenModel ReadLoraGolden(const std::string& name);
// `file` such as "Q8_0.gguf".
GoldenModel ReadQuantGolden(const std::string& file);

// Path of a file under tests/golden.
std::string GoldenPath(const std::string& relative);

}  // namespace tandem::testing

#endif  // TANDEM_TESTS_CLUSTER_GOLDEN_CASES_H_
