#include "client/answer_printer.h"

#include "client/json_forms.h"

namespace tandem::client {

void Answer::Append(const v1::GenerateResponse& response) {
  text += response.text();
  token_ids.insert(token_ids.end(), response.token_ids().begin(), response.token_ids().end());
  logprobs.insert(logprobs.end(), response.logprobs().begin(), response.logprobs().end());
  prompt_logprobs.insert(prompt_logprobs.end(), response.prompt_logprobs().begin(),
                         response.prompt_logprobs().end());
  if (response.finish_reason() == v1::FINISH_REASON_UNSPECIFIED) return;
  finish_reason = response.finish_reason();
  usage = response.usage();
}

void AnswerPrinter::OnDelta(size_t index, const v1::GenerateResponse& delta) {
  entries_[index].answer.Append(delta);
  if (index == front_) Advance();
}

void AnswerPrinter::OnEnd(size_t index, const absl::Status& status) {
  Entry& entry = entries_[index];
  entry.answer.status = status;
  entry.ended = true;
  if (index == front_) Advance();
}

absl::Status AnswerPrinter::FirstError() const {
  for (const Entry& entry : entries_) {
    if (!entry.answer.status.ok()) return entry.answer.status;
  }
  return absl::OkStatus();
}

void AnswerPrinter::Advance() {
  for (; front_ < entries_.size(); ++front_) {
    Entry& entry = entries_[front_];
    if (format_ == AnswerFormat::kText) PrintText(entry);
    if (!entry.ended) break;
    if (format_ == AnswerFormat::kJson) out_ << ToJson(entry.answer) << '\n';
  }
  out_.flush();
}

void AnswerPrinter::PrintText(Entry& entry) {
  const Answer& answer = entry.answer;
  if (entries_.size() > 1 && !entry.has_header) {
    out_ << "== prompt " << front_ + 1 << " of " << entries_.size() << " ==\n";
    entry.has_header = true;
  }
  out_.write(answer.text.data() + entry.printed_bytes,
             static_cast<std::streamsize>(answer.text.size() - entry.printed_bytes));
  entry.printed_bytes = answer.text.size();
  if (!entry.ended) return;
  if (answer.status.ok() || !answer.text.empty()) out_ << '\n';
  if (!answer.status.ok() && entries_.size() > 1) {
    out_ << "(failed: " << answer.status.message() << ")\n";
  }
}

int64_t AnswerPrinter::CompletionTokens() const {
  size_t tokens = 0;
  for (const Entry& entry : entries_) tokens += entry.answer.token_ids.size();
  return static_cast<int64_t>(tokens);
}

}  // namespace tandem::client
