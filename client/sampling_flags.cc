#include "client/sampling_flags.h"

#include <CLI/CLI.hpp>

namespace tandem::client {

void AddSamplingFlags(CLI::App& app, SamplingFlags& flags) {
  app.add_option("--max-tokens", flags.max_tokens,
                 "most tokens of the answer (default: to the end of the context)");
  app.add_option("--min-tokens", flags.min_tokens, "no end before so many tokens (default: 0)");
  app.add_option("--temperature", flags.temperature, "0: always the likeliest token (default: 1)");
  app.add_option("--top-p", flags.top_p,
                 "likeliest tokens up to this mass, in (0, 1] (default: 1)");
  app.add_option("--top-k", flags.top_k, "so many likeliest tokens; 0: all (default: 0)");
  app.add_option("--min-p", flags.min_p,
                 "tokens at least so likely, relative to the likeliest (default: 0)");
  app.add_option("--seed", flags.seed, "the same seed gives the same answer (default: drawn)");
  app.add_option("--stop", flags.stop, "ends the answer before this text; may be repeated")
      ->allow_extra_args(false);
  app.add_option("--logprobs", flags.logprobs,
                 "log-probabilities of every token of the answer and of the likeliest N\n"
                 "there, 0 to 20; shown by --json");
  app.add_option("--prompt-logprobs", flags.prompt_logprobs, "the same for the prompt's tokens");
  app.add_flag("--ignore-eos", flags.ignore_eos, "go on after an end-of-generation token");
  app.add_flag("--no-special", flags.no_special, "no BOS before a text prompt");
  app.add_flag("--parse-special", flags.parse_special,
               "control tokens written in a text prompt are those tokens");
}

v1::GenerateRequest MakeRequest(const SamplingFlags& flags) {
  v1::GenerateRequest request;
  v1::SamplingParams& sampling = *request.mutable_sampling();
  if (flags.max_tokens) sampling.set_max_tokens(*flags.max_tokens);
  if (flags.min_tokens) sampling.set_min_tokens(*flags.min_tokens);
  if (flags.temperature) sampling.set_temperature(*flags.temperature);
  if (flags.top_p) sampling.set_top_p(*flags.top_p);
  if (flags.top_k) sampling.set_top_k(*flags.top_k);
  if (flags.min_p) sampling.set_min_p(*flags.min_p);
  if (flags.seed) sampling.set_seed(*flags.seed);
  for (const std::string& stop : flags.stop) sampling.add_stop(stop);
  if (flags.logprobs) sampling.set_logprobs(*flags.logprobs);
  if (flags.prompt_logprobs) sampling.set_prompt_logprobs(*flags.prompt_logprobs);
  if (flags.ignore_eos) sampling.set_ignore_eos(true);
  if (flags.no_special) request.set_add_special_tokens(false);
  if (flags.parse_special) request.set_parse_special_tokens(true);
  return request;
}

}  // namespace tandem::client
