#include "client/form_flags.h"

#include <string>

#include "absl/status/status.h"
#include "client/input.h"
#include "common/base/status.h"

namespace tandem::client {
namespace {

absl::Status CheckReasoningFlags(const SamplingFlags& flags, bool has_form) {
  if (flags.reasoning_end.empty()) {
    if (flags.reasoning_start.empty() && flags.answer_start.empty()) return absl::OkStatus();
    return absl::InvalidArgumentError("--reasoning-start and --answer-start need --reasoning-end");
  }
  if (!has_form) {
    return absl::InvalidArgumentError(
        "--reasoning-end needs one of --json-schema, --json-object, --regex, --choice and "
        "--grammar: it says where the answer of that form begins");
  }
  TANDEM_RETURN_IF_ERROR(CheckUtf8("--reasoning-start", flags.reasoning_start));
  TANDEM_RETURN_IF_ERROR(CheckUtf8("--reasoning-end", flags.reasoning_end));
  return CheckUtf8("--answer-start", flags.answer_start);
}

absl::Status CheckFormFlags(SamplingFlags& flags) {
  const int given = (flags.json_schema_file.empty() ? 0 : 1) + (flags.json_object ? 1 : 0) +
                    (flags.regex.empty() ? 0 : 1) + (flags.choices.empty() ? 0 : 1) +
                    (flags.grammar_file.empty() ? 0 : 1);
  if (given > 1) {
    return absl::InvalidArgumentError(
        "--json-schema, --json-object, --regex, --choice and --grammar are given: only one can be");
  }
  TANDEM_RETURN_IF_ERROR(CheckReasoningFlags(flags, given > 0));
  TANDEM_RETURN_IF_ERROR(CheckUtf8("--regex", flags.regex));
  for (const std::string& choice : flags.choices) {
    TANDEM_RETURN_IF_ERROR(CheckUtf8("--choice", choice));
  }
  if (!flags.grammar_file.empty()) {
    TANDEM_ASSIGN_OR_RETURN(flags.grammar, ReadAll(flags.grammar_file));
    return CheckUtf8(flags.grammar_file, flags.grammar);
  }
  if (flags.json_schema_file.empty()) return absl::OkStatus();
  TANDEM_ASSIGN_OR_RETURN(flags.json_schema, ReadAll(flags.json_schema_file));
  return CheckUtf8(flags.json_schema_file, flags.json_schema);
}

}  // namespace

void AddFormFlags(cli::Command& command, SamplingFlags& flags) {
  command.Add({flags.json_schema_file,
               {.flag = "--json-schema",
                .help = "file of a JSON schema: the answer is a JSON text that it allows"}});
  command.Add(
      {flags.json_object, {.flag = "--json-object", .help = "the answer is a JSON object"}});
  command.Add(
      {flags.regex,
       {.flag = "--regex", .help = "the answer matches this regular expression from end to end"}});
  command.Add(
      {flags.choices, {.flag = "--choice", .help = "the answer is this text; may be repeated"}});
  command.Add({flags.grammar_file,
               {.flag = "--grammar", .help = "file of a grammar in GBNF: the answer is of it"}});
  command.Add({flags.reasoning_end,
               {.flag = "--reasoning-end",
                .help = "the answer of that form comes after thoughts, which this text ends"}});
  command.Add({flags.reasoning_start,
               {.flag = "--reasoning-start",
                .help = "what thoughts begin with, if there are any (the prompt has begun them)"}});
  command.Add({flags.answer_start,
               {.flag = "--answer-start",
                .help = "what stands between --reasoning-end and the answer (nothing)"}});
  command.OnCheck([&flags] { return CheckFormFlags(flags); });
}

void SetFormField(const SamplingFlags& flags, v1::SamplingParams& out) {
  if (!flags.json_schema_file.empty()) out.set_json_schema(flags.json_schema);
  if (flags.json_object) out.set_json_object(true);
  if (!flags.regex.empty()) out.set_regex(flags.regex);
  for (const std::string& choice : flags.choices) out.mutable_choice()->add_texts(choice);
  if (!flags.grammar_file.empty()) out.set_grammar(flags.grammar);
  if (flags.reasoning_end.empty()) return;
  v1::Reasoning& reasoning = *out.mutable_reasoning();
  reasoning.set_start(flags.reasoning_start);
  reasoning.set_end(flags.reasoning_end);
  reasoning.set_answer_start(flags.answer_start);
}

}  // namespace tandem::client
