#include "client/sampling_flags.h"

#include <limits>

#include "client/connection_flags.h"
#include "client/form_flags.h"
#include "client/input.h"
#include "client/logit_flags.h"
#include "common/base/limits.h"
#include "common/base/status.h"
#include "common/step/sampling_ranges.h"

namespace tandem::client {
namespace {

constexpr double kMost = std::numeric_limits<int32_t>::max();

absl::Status CheckRanges(const SamplingFlags& flags) {
  TANDEM_RETURN_IF_ERROR(CheckUtf8("--cache-salt", flags.cache_salt));
  TANDEM_RETURN_IF_ERROR(CheckUtf8("--adapter", flags.adapter));
  for (const std::string& stop : flags.stop) TANDEM_RETURN_IF_ERROR(CheckUtf8("--stop", stop));
  // The API takes -1 for off, too.
  const int32_t top_k = flags.top_k == -1 ? 0 : flags.top_k.value_or(0);
  const step::SamplingFilters off;
  return step::CheckSamplingRanges(
      {.temperature = flags.temperature.value_or(off.temperature),
       .top_p = flags.top_p.value_or(off.top_p),
       .min_p = flags.min_p.value_or(off.min_p),
       .top_k = top_k,
       .typical_p = flags.typical_p.value_or(off.typical_p),
       .xtc_probability = flags.xtc_probability.value_or(off.xtc_probability),
       .xtc_threshold = flags.xtc_threshold.value_or(off.xtc_threshold)});
}

}  // namespace

void AddSamplingFlags(cli::Command& command, SamplingFlags& flags) {
  command.Add({flags.max_tokens,
               {.flag = "--max-tokens",
                .help = "most tokens of the answer (default: to the end of the context)",
                .least = 1,
                .most = kMost}});
  command.Add({flags.clamp_max_tokens,
               {.flag = "--clamp-max-tokens",
                .help = "if --max-tokens is more than what fits: as many as fit"}});
  command.Add({flags.min_tokens,
               {.flag = "--min-tokens",
                .help = "minimum tokens before an end (default: 0)",
                .least = 0,
                .most = kMost}});
  command.Add({flags.temperature,
               {.flag = "--temperature", .help = "0: greedy, the most likely token (default: 1)"}});
  command.Add(
      {flags.top_p,
       {.flag = "--top-p",
        .help = "sample from the most likely tokens up to this mass, in (0, 1] (default: 1)"}});
  command.Add({flags.top_k,
               {.flag = "--top-k",
                .help = "sample from this many most likely tokens; 0: all (default: 0)"}});
  command.Add({flags.min_p,
               {.flag = "--min-p",
                .help = "minimum probability, relative to the most likely token (default: 0)"}});
  command.Add({flags.typical_p,
               {.flag = "--typical-p",
                .help = "sample from the tokens whose information is closest to the mean, up to\n"
                        "this mass, in (0, 1] (default: 1)"}});
  command.Add({flags.xtc_probability,
               {.flag = "--xtc-probability",
                .help = "XTC: with this probability drops all tokens of at least the threshold\n"
                        "but the least likely of them (default: 0)"}});
  command.Add(
      {flags.xtc_threshold, {.flag = "--xtc-threshold", .help = "its threshold (default: 0.1)"}});
  AddLogitFlags(command, flags);
  AddFormFlags(command, flags);
  command.Add(
      {flags.seed,
       {.flag = "--seed", .help = "the same seed gives the same answer (default: random)"}});
  command.Add({flags.stop,
               {.flag = "--stop", .help = "ends the answer before this text; may be repeated"}});
  command.Add({flags.include_stop,
               {.flag = "--include-stop", .help = "the answer ends with this text instead"}});
  command.Add({flags.stop_token_ids,
               {.flag = "--stop-token-id",
                .help = "ends the answer at this token: 1,2,3; may be repeated",
                .least = 0,
                .most = kMost}});
  command.Add({flags.n,
               {.flag = "--n",
                .help = "continuations of each prompt, 1 to 128; each draws with its own seed",
                .least = 1,
                .most = kMaxChoices}});
  command.Add({flags.logprobs,
               {.flag = "--logprobs",
                .help = "log-probabilities of every token of the answer and of the likeliest N\n"
                        "there, 0 to 20; shown by --json",
                .least = 0,
                .most = kMaxTopLogprobs}});
  command.Add({flags.prompt_logprobs,
               {.flag = "--prompt-logprobs",
                .help = "the same for the prompt's tokens",
                .least = 0,
                .most = kMaxTopLogprobs}});
  command.Add({flags.ignore_eos,
               {.flag = "--ignore-eos", .help = "continue after an end-of-generation token"}});
  command.Add({flags.no_special, {.flag = "--no-special", .help = "no BOS before a text prompt"}});
  command.Add({flags.parse_special,
               {.flag = "--parse-special",
                .help = "control tokens written in a text prompt are those tokens"}});
  command.Add({flags.cache_salt,
               {.flag = "--cache-salt",
                .help = "share cached prefixes only with requests of the same salt"}});
  AddAdapterFlag(command, flags.adapter);
  command.Add({flags.priority,
               {.flag = "--priority",
                .help = "a lower number goes first, -100 to 100 (default: 0)",
                .least = -100,
                .most = 100}});
  command.OnCheck([&flags] { return CheckRanges(flags); });
}

v1::GenerateRequest MakeRequest(const SamplingFlags& flags) {
  v1::GenerateRequest request;
  v1::SamplingParams& sampling = *request.mutable_sampling();
  if (flags.n) sampling.set_n(*flags.n);
  if (flags.max_tokens) sampling.set_max_tokens(*flags.max_tokens);
  if (flags.clamp_max_tokens) sampling.set_clamp_max_tokens(true);
  if (flags.min_tokens) sampling.set_min_tokens(*flags.min_tokens);
  if (flags.temperature) sampling.set_temperature(*flags.temperature);
  if (flags.top_p) sampling.set_top_p(*flags.top_p);
  if (flags.top_k) sampling.set_top_k(*flags.top_k);
  if (flags.min_p) sampling.set_min_p(*flags.min_p);
  if (flags.seed) sampling.set_seed(*flags.seed);
  if (flags.typical_p) sampling.set_typical_p(*flags.typical_p);
  if (flags.xtc_probability) sampling.set_xtc_probability(*flags.xtc_probability);
  if (flags.xtc_threshold) sampling.set_xtc_threshold(*flags.xtc_threshold);
  SetFormField(flags, sampling);
  SetLogitFields(flags, sampling);
  for (const std::string& stop : flags.stop) sampling.add_stop(stop);
  if (flags.include_stop) sampling.set_include_stop(true);
  for (const int32_t id : flags.stop_token_ids) sampling.add_stop_token_ids(id);
  if (flags.logprobs) sampling.set_logprobs(*flags.logprobs);
  if (flags.prompt_logprobs) sampling.set_prompt_logprobs(*flags.prompt_logprobs);
  if (flags.ignore_eos) sampling.set_ignore_eos(true);
  if (flags.no_special) request.set_add_special_tokens(false);
  if (flags.parse_special) request.set_parse_special_tokens(true);
  if (!flags.cache_salt.empty()) request.set_cache_salt(flags.cache_salt);
  if (!flags.adapter.empty()) request.set_adapter(flags.adapter);
  if (flags.priority) request.set_priority(*flags.priority);
  return request;
}

}  // namespace tandem::client
