#include "client/answer_printer.h"

#include "absl/strings/str_cat.h"
#include "client/json_forms.h"
#include "common/cli/output.h"

namespace tandem::client {

void Answer::Append(const v1::GenerateResponse& response) {
  text += response.text();
  token_ids.insert(token_ids.end(), response.token_ids().begin(), response.token_ids().end());
  logprobs.insert(logprobs.end(), response.logprobs().begin(), response.logprobs().end());
  prompt_logprobs.insert(prompt_logprobs.end(), response.prompt_logprobs().begin(),
                         response.prompt_logprobs().end());
  if (response.finish_reason() == v1::FINISH_REASON_UNSPECIFIED) return;
  finish_reason = response.finish_reason();
  if (response.has_matched_stop_string()) matched_stop = response.matched_stop_string();
  if (response.has_matched_stop_token_id()) matched_stop = response.matched_stop_token_id();
  usage = response.usage();
}

bool AnswerPrinter::OnDelta(size_t index, const v1::GenerateResponse& delta) {
  entries_[index].answer.Append(delta);
  if (index == front_) Advance();
  return written_.ok();
}

void AnswerPrinter::OnEnd(size_t index, const absl::Status& status) {
  Entry& entry = entries_[index];
  entry.answer.status = status;
  entry.ended = true;
  if (index == front_) Advance();
}

absl::Status AnswerPrinter::Result() const {
  if (!written_.ok()) {
    const std::string lost = entries_.size() == 1
                                 ? "the answer is"
                                 : absl::StrCat("answers ", front_ + 1, " to ", entries_.size(),
                                                " of ", entries_.size(), " are");
    return {written_.code(), absl::StrCat(written_.message(), ": ", lost, " not written")};
  }
  for (const Entry& entry : entries_) {
    if (!entry.answer.status.ok()) return entry.answer.status;
  }
  return absl::OkStatus();
}

void AnswerPrinter::Advance() {
  for (; written_.ok() && front_ < entries_.size(); ++front_) {
    Entry& entry = entries_[front_];
    std::string text;
    if (format_ == AnswerFormat::kText) FormatText(entry, text);
    if (format_ == AnswerFormat::kJson && entry.ended) text = ToJson(entry.answer) + "\n";
    written_ = cli::Write(out_, text);
    // Flushed one by one: what is counted as written has left this program.
    if (written_.ok()) written_ = cli::Flush(out_);
    if (!written_.ok() || !entry.ended) return;
  }
}

void AnswerPrinter::FormatText(Entry& entry, std::string& out) const {
  const Answer& answer = entry.answer;
  if (entries_.size() > 1 && !entry.has_header) {
    absl::StrAppend(&out, "== prompt ", front_ + 1, " of ", entries_.size(), " ==\n");
    entry.has_header = true;
  }
  out.append(answer.text, entry.printed_bytes);
  entry.printed_bytes = answer.text.size();
  if (!entry.ended) return;
  if (answer.status.ok() || !answer.text.empty()) out += '\n';
  if (!answer.status.ok() && entries_.size() > 1) {
    absl::StrAppend(&out, "(failed: ", answer.status.message(), ")\n");
  }
}

int64_t AnswerPrinter::CompletionTokens() const {
  size_t tokens = 0;
  for (const Entry& entry : entries_) tokens += entry.answer.token_ids.size();
  return static_cast<int64_t>(tokens);
}

}  // namespace tandem::client
