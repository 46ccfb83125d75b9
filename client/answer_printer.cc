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

AnswerPrinter::AnswerPrinter(std::ostream& out, AnswerFormat format,
                             const std::vector<int32_t>& num_choices)
    : out_(out), format_(format) {
  for (size_t prompt = 0; prompt < num_choices.size(); ++prompt) {
    first_entries_.push_back(entries_.size());
    for (int32_t choice = 0; choice < num_choices[prompt]; ++choice) {
      Entry& entry = entries_.emplace_back();
      entry.prompt = prompt;
      entry.num_choices = num_choices[prompt];
      if (entry.num_choices > 1) entry.answer.index = choice;
    }
  }
}

bool AnswerPrinter::OnDelta(size_t index, const v1::GenerateResponse& delta) {
  const size_t first = first_entries_[index];
  if (delta.index() < 0 || delta.index() >= entries_[first].num_choices) return false;
  const size_t changed = first + static_cast<size_t>(delta.index());
  Entry& entry = entries_[changed];
  entry.answer.Append(delta);
  // The one of several that ends first need not wait for the others.
  entry.ended = entry.num_choices > 1 && delta.finish_reason() != v1::FINISH_REASON_UNSPECIFIED;
  if (changed == front_) Advance();
  return written_.ok();
}

void AnswerPrinter::OnEnd(size_t index, const absl::Status& status) {
  const size_t first = first_entries_[index];
  for (size_t i = first; i < entries_.size() && entries_[i].prompt == index; ++i) {
    if (entries_[i].ended) continue;
    entries_[i].answer.status = status;
    entries_[i].ended = true;
  }
  Advance();
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
    if (!text.empty()) {
      written_ = cli::Write(out_, text);
      // Flushed one by one: what is counted as written has left this program.
      if (written_.ok()) written_ = cli::Flush(out_);
    }
    if (!written_.ok() || !entry.ended) return;
  }
}

std::string AnswerPrinter::NameOf(const Entry& entry) const {
  std::string name;
  if (first_entries_.size() > 1) {
    absl::StrAppend(&name, "prompt ", entry.prompt + 1, " of ", first_entries_.size());
  }
  if (entry.num_choices == 1) return name;
  absl::StrAppend(&name, name.empty() ? "" : ", ", "continuation ", *entry.answer.index + 1, " of ",
                  entry.num_choices);
  return name;
}

void AnswerPrinter::FormatText(Entry& entry, std::string& out) const {
  const Answer& answer = entry.answer;
  if (entries_.size() > 1 && !entry.has_header) {
    absl::StrAppend(&out, "== ", NameOf(entry), " ==\n");
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
