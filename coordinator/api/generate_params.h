// GenerateParams: a client's request, independent of the API. Unchecked; unset values take their
// defaults.
#ifndef TANDEM_COORDINATOR_API_GENERATE_PARAMS_H_
#define TANDEM_COORDINATOR_API_GENERATE_PARAMS_H_

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "common/base/ids.h"
#include "common/step/sampling_ranges.h"
#include "common/tokenizer/tokenizer.h"
#include "coordinator/api/constraint.h"
#include "coordinator/api/text_or_ids.h"

namespace tandem::coordinator {

struct GenerateParams {
  std::string request_id{};  // empty: random
  std::string cache_salt{};
  std::string adapter{};  // empty: the model alone
  int32_t priority = 0;
  TextOrIds prompt{};
  tokenizer::EncodeOptions encode{};  // of a text prompt
  // Keeps only the last tokens of a prompt that has more; unset: a prompt is taken whole.
  std::optional<int32_t> truncate_prompt_tokens{};
  int32_t n = 1;                    // continuations
  bool skip_special_tokens = true;  // in the text that is sent
  float temperature = 1;
  float top_p = 1;
  float min_p = 0;
  int32_t top_k = 0;                    // 0 and -1: off
  std::optional<int32_t> max_tokens{};  // to the end of the context
  int32_t min_tokens = 0;
  std::optional<bool> clamp_max_tokens{};  // to what fits; unset: as the server does
  std::optional<uint64_t> seed{};          // unset: random
  bool ignore_eos = false;
  bool speculation = true;  // if the server speculates
  std::vector<std::string> stop{};
  bool include_stop = false;
  std::vector<TokenId> stop_token_ids{};
  std::optional<int32_t> logprobs{};
  std::optional<int32_t> prompt_logprobs{};
  float typical_p = 1;
  float xtc_probability = 0;
  float xtc_threshold = 0.1f;
  step::SamplingPenalties penalties{};
  std::vector<std::pair<TokenId, float>> logit_bias{};  // in any order
  std::vector<std::string> bad_words{};
  std::vector<std::string> dry_sequence_breakers{};  // empty: the default ones
  Constraint constraint{};
};

}  // namespace tandem::coordinator

#endif  // TANDEM_COORDINATOR_API_GENERATE_PARAMS_H_
