// The output of `--json`. Only json_forms.cc, prompt_file.cc and trace/ use the JSON library.
#ifndef TANDEM_CLIENT_JSON_FORMS_H_
#define TANDEM_CLIENT_JSON_FORMS_H_

#include <string>

namespace tandem::model {
struct ModelInfo;
}
namespace tandem::v1 {
class EmbedResponse;
class GetStatsResponse;
class ScoreResponse;
}  // namespace tandem::v1

namespace tandem::client {

struct Answer;
struct BenchReport;

// One JSON object on one line: index if the prompt has several continuations, text, token_ids,
// finish_reason (stop, length or cancelled) and usage; a failed answer has null for the last two,
// and `error` and `code`. If requested, `logprobs` and `prompt_logprobs`: lists of token_id,
// logprob (null: impossible), rank and top; the prompt's first token has null.
std::string ToJson(const Answer& answer);
// One object, indented, without a newline at its end. Sizes are bytes, unless named otherwise.
std::string ToJson(const model::ModelInfo& info);
// One object on one line, with embedding and usage.
std::string ToJson(const v1::EmbedResponse& answer);
// Of a whole continuation: one object on one line, with logprob, is_greedy, tokens and usage.
std::string ToJson(const v1::ScoreResponse& answer);
// One object on one line; every field is there, zeros too.
std::string ToJson(const v1::GetStatsResponse& stats);
// One object, indented, without a newline at its end. Keys `prefill_tokens_per_second` (a number),
// `decode_tokens_per_second` (by batch), the set-up, and under `coordinator_us_per_step` the
// coordinator's time by phase. Values not measured are absent.
std::string ToJson(const BenchReport& report);

}  // namespace tandem::client

#endif  // TANDEM_CLIENT_JSON_FORMS_H_
