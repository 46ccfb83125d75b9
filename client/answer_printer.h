// AnswerPrinter: prints answers that arrive in any order in input order, streaming the first
// unfinished one. Every write is checked.
#ifndef TANDEM_CLIENT_ANSWER_PRINTER_H_
#define TANDEM_CLIENT_ANSWER_PRINTER_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <ostream>
#include <string>
#include <variant>
#include <vector>

#include "absl/status/status.h"
#include "client/generation_run.h"
#include "proto/tandem/v1/generation.pb.h"

namespace tandem::client {

// One continuation of a prompt, accumulated from the stream's messages.
struct Answer {
  std::optional<int32_t> index;  // of the continuation, if the prompt has several
  std::string text;
  std::vector<int32_t> token_ids;
  std::vector<v1::TokenLogprobs> logprobs;         // one per token id, if requested
  std::vector<v1::TokenLogprobs> prompt_logprobs;  // one per prompt token, the first one empty
  v1::FinishReason finish_reason = v1::FINISH_REASON_UNSPECIFIED;
  std::variant<std::monostate, std::string, int32_t> matched_stop;  // a stop string, or an id
  v1::Usage usage;
  absl::Status status;  // not OK: the request failed; text and ids are partial

  void Append(const v1::GenerateResponse& response);
};

enum class AnswerFormat { kText, kJson };

// Not thread-safe: GenerationRun makes one call at a time.
class AnswerPrinter : public GenerationListener {
 public:
  // `out` must outlive the printer. `num_choices`: of each prompt's continuations, at least 1.
  // Several texts get a header each.
  AnswerPrinter(std::ostream& out, AnswerFormat format, const std::vector<int32_t>& num_choices);

  bool OnDelta(size_t index, const v1::GenerateResponse& delta) override;
  void OnEnd(size_t index, const absl::Status& status) override;

  // DATA_LOSS naming the answers that could not be written; else the error of the first prompt that
  // failed; or OK.
  absl::Status Result() const;
  // Totals of all answers.
  int64_t CompletionTokens() const;

 private:
  struct Entry {
    size_t prompt = 0;
    int32_t num_choices = 1;  // of the prompt
    Answer answer;
    bool ended = false;
    size_t printed_bytes = 0;  // of the text
    bool has_header = false;
  };

  // Prints all ended answers up to the first unfinished one, and that one's text so far; stops at
  // the first write that fails.
  void Advance();
  // "prompt 2 of 3, continuation 1 of 4", as far as there are several.
  std::string NameOf(const Entry& entry) const;
  // Appends what is new of the text to `out`.
  void FormatText(Entry& entry, std::string& out) const;

  std::ostream& out_;
  const AnswerFormat format_;
  std::vector<size_t> first_entries_;  // by prompt
  std::vector<Entry> entries_;
  size_t front_ = 0;      // the first not completely printed
  absl::Status written_;  // the first write that failed
};

}  // namespace tandem::client

#endif  // TANDEM_CLIENT_ANSWER_PRINTER_H_
