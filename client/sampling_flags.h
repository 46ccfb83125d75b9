// The sampling flags of `tandem generate`, and their conversion to a request.
#ifndef TANDEM_CLIENT_SAMPLING_FLAGS_H_
#define TANDEM_CLIENT_SAMPLING_FLAGS_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "common/cli/command.h"
#include "proto/tandem/v1/generation.pb.h"

namespace tandem::client {

// Flags not given are left unset: the server has the defaults.
struct SamplingFlags {
  std::optional<int32_t> n;
  std::optional<int32_t> max_tokens;
  std::optional<int32_t> min_tokens;
  std::optional<float> temperature;
  std::optional<float> top_p;
  std::optional<int32_t> top_k;
  std::optional<float> min_p;
  std::optional<uint64_t> seed;
  std::optional<float> typical_p;
  std::optional<float> xtc_probability;
  std::optional<float> xtc_threshold;
  std::optional<float> frequency_penalty;
  std::optional<float> presence_penalty;
  std::optional<float> repetition_penalty;
  std::optional<int32_t> penalty_window;
  std::vector<std::string> logit_bias;  // each ID=BIAS
  std::vector<std::string> bad_words;
  std::optional<float> dry_multiplier;
  std::optional<float> dry_base;
  std::optional<int32_t> dry_allowed_length;
  std::optional<int32_t> dry_penalty_last_n;
  std::vector<std::string> dry_sequence_breakers;
  std::string json_schema_file;  // the form of the answer: at most one of these
  std::string json_schema;       // what the file holds
  bool json_object = false;
  std::string regex;
  std::string grammar_file;
  std::string grammar;  // its content
  std::vector<std::string> choices;
  std::string reasoning_start;  // thoughts before an answer of that form
  std::string reasoning_end;
  std::string answer_start;
  std::vector<std::string> stop;
  std::vector<int32_t> stop_token_ids;
  std::optional<int32_t> logprobs;
  std::optional<int32_t> prompt_logprobs;
  bool include_stop = false;
  bool clamp_max_tokens = false;
  bool ignore_eos = false;
  bool no_special = false;
  bool parse_special = false;
  std::string cache_salt;
  std::string adapter;
  std::optional<int32_t> priority;
};

// Adds them with checks of their ranges. `flags` must outlive the parse.
void AddSamplingFlags(cli::Command& command, SamplingFlags& flags);

// A request without a prompt.
v1::GenerateRequest MakeRequest(const SamplingFlags& flags);

}  // namespace tandem::client

#endif  // TANDEM_CLIENT_SAMPLING_FLAGS_H_
