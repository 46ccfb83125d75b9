#include "client/logit_flags.h"

#include <string>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "client/input.h"
#include "common/base/status.h"
#include "common/step/sampling_ranges.h"

namespace tandem::client {
namespace {

absl::StatusOr<std::pair<int32_t, float>> ParseBias(const std::string& text) {
  const std::vector<std::string> parts = absl::StrSplit(text, '=');
  int32_t id = 0;
  float bias = 0;
  if (parts.size() != 2 || !absl::SimpleAtoi(parts[0], &id) || id < 0 ||
      !absl::SimpleAtof(parts[1], &bias)) {
    return absl::InvalidArgumentError(
        absl::StrCat("--logit-bias is '", text, "', it must be ID=BIAS, such as 42=-5"));
  }
  TANDEM_RETURN_IF_ERROR(step::CheckLogitBias(id, bias));
  return std::pair(id, bias);
}

absl::Status CheckLogitFlags(const SamplingFlags& flags) {
  for (const std::string& text : flags.logit_bias) {
    TANDEM_RETURN_IF_ERROR(ParseBias(text).status());
  }
  for (const std::string& word : flags.bad_words) {
    TANDEM_RETURN_IF_ERROR(CheckUtf8("--bad-word", word));
  }
  for (const std::string& breaker : flags.dry_sequence_breakers) {
    TANDEM_RETURN_IF_ERROR(CheckUtf8("--dry-sequence-breaker", breaker));
  }
  const step::SamplingPenalties off;
  return step::CheckPenaltyRanges(
      {.frequency = flags.frequency_penalty.value_or(off.frequency),
       .presence = flags.presence_penalty.value_or(off.presence),
       .repetition = flags.repetition_penalty.value_or(off.repetition),
       .window = flags.penalty_window.value_or(off.window),
       .dry_multiplier = flags.dry_multiplier.value_or(off.dry_multiplier),
       .dry_base = flags.dry_base.value_or(off.dry_base),
       .dry_allowed_length = flags.dry_allowed_length.value_or(off.dry_allowed_length),
       .dry_penalty_last_n = flags.dry_penalty_last_n.value_or(off.dry_penalty_last_n)});
}

void AddPenaltyFlags(cli::Command& command, SamplingFlags& flags) {
  command.Add({flags.frequency_penalty,
               {.flag = "--frequency-penalty",
                .help = "subtracted from a token's logit for each time that it was generated, -2\n"
                        "to 2 (default: 0)"}});
  command.Add({flags.presence_penalty,
               {.flag = "--presence-penalty",
                .help = "subtracted from the logit of tokens generated before, -2 to 2\n"
                        "(default: 0)"}});
  command.Add({flags.repetition_penalty,
               {.flag = "--repetition-penalty",
                .help = "divides positive logits of tokens that occur, in the prompt too, and\n"
                        "multiplies others (default: 1)"}});
  command.Add({flags.penalty_window,
               {.flag = "--penalty-window",
                .help = "how many of the last tokens these three see; -1: the last 4096\n"
                        "(default: -1)"}});
}

void AddDryFlags(cli::Command& command, SamplingFlags& flags) {
  command.Add({flags.dry_multiplier,
               {.flag = "--dry-multiplier",
                .help = "DRY: lowers tokens that would continue a repetition of n tokens by this\n"
                        "times base ^ (n - allowed length); 0: off (default: 0)"}});
  command.Add({flags.dry_base, {.flag = "--dry-base", .help = "its base (default: 1.75)"}});
  command.Add({flags.dry_allowed_length,
               {.flag = "--dry-allowed-length",
                .help = "repetitions from this length on are lowered (default: 2)"}});
  command.Add({flags.dry_penalty_last_n,
               {.flag = "--dry-penalty-last-n",
                .help = "how many of the last tokens it sees; -1: the last 4096 (default: -1)"}});
  command.Add({flags.dry_sequence_breakers,
               {.flag = "--dry-sequence-breaker",
                .help = "no repetition goes across a token with this text; may be repeated; none:\n"
                        "no breakers (default: newline, colon, quotation mark, asterisk)"}});
}

}  // namespace

void AddLogitFlags(cli::Command& command, SamplingFlags& flags) {
  AddPenaltyFlags(command, flags);
  command.Add({flags.logit_bias,
               {.flag = "--logit-bias",
                .help = "added to this token's logit: ID=BIAS, -100 to 100; may be repeated"}});
  command.Add({flags.bad_words,
               {.flag = "--bad-word",
                .help = "is not generated as the tokenizer writes it; may be repeated"}});
  AddDryFlags(command, flags);
  command.OnCheck([&flags] { return CheckLogitFlags(flags); });
}

void SetLogitFields(const SamplingFlags& flags, v1::SamplingParams& out) {
  if (flags.frequency_penalty) out.set_frequency_penalty(*flags.frequency_penalty);
  if (flags.presence_penalty) out.set_presence_penalty(*flags.presence_penalty);
  if (flags.repetition_penalty) out.set_repetition_penalty(*flags.repetition_penalty);
  if (flags.penalty_window) out.set_penalty_window(*flags.penalty_window);
  for (const std::string& text : flags.logit_bias) {
    if (const auto bias = ParseBias(text); bias.ok()) {
      (*out.mutable_logit_bias())[bias->first] = bias->second;
    }
  }
  for (const std::string& word : flags.bad_words) out.add_bad_words(word);
  if (flags.dry_multiplier) out.set_dry_multiplier(*flags.dry_multiplier);
  if (flags.dry_base) out.set_dry_base(*flags.dry_base);
  if (flags.dry_allowed_length) out.set_dry_allowed_length(*flags.dry_allowed_length);
  if (flags.dry_penalty_last_n) out.set_dry_penalty_last_n(*flags.dry_penalty_last_n);
  for (const std::string& text : flags.dry_sequence_breakers) out.add_dry_sequence_breakers(text);
}

}  // namespace tandem::client
