#include <algorithm>
#include <iterator>
#include <string>

#include "absl/strings/str_cat.h"
#include "common/base/status.h"
#include "common/base/strings.h"
#include "common/step/codec.h"
#include "common/step/sections.h"

namespace tandem::step {
namespace {

constexpr SectionTag kResultTags[] = {kTagResult, kTagMessage, kTagResultRows, kTagPooled,
                                      kTagGuesses};
constexpr size_t kResultBytes = 2 * sizeof(uint64_t) + 2 * sizeof(uint32_t) + sizeof(StepTimings);
constexpr size_t kResultRowBytes = 3 * sizeof(uint32_t);
static_assert(sizeof(TokenLogprob) == 12, "log-probabilities are copied as in memory");
static_assert(sizeof(StepTimings) == 32, "timings are copied as in memory");

absl::Status GetResultRows(WireReader reader, std::vector<RowResult>& rows) {
  uint32_t count = 0;
  if (!reader.GetCount(kResultRowBytes, count)) {
    return BadSection(kTagResultRows, "count exceeds the frame");
  }
  rows.resize(count);
  for (RowResult& row : rows) {
    uint32_t tokens = 0, logprobs = 0, logits = 0;
    if (!reader.Get(tokens) || !reader.Get(logprobs) || !reader.Get(logits) ||
        !reader.GetArray(tokens, row.tokens) || !reader.GetArray(logprobs, row.logprobs) ||
        !reader.GetArray(logits, row.logits)) {
      return BadSection(kTagResultRows, "count exceeds the frame");
    }
  }
  return CheckConsumed(kTagResultRows, reader);
}

absl::Status GetStatus(const Sections& sections, uint32_t code, absl::Status& status) {
  TANDEM_ASSIGN_OR_RETURN(WireReader reader, sections.Find(kTagMessage));
  std::vector<char> message;
  if (!reader.GetRest(message) || message.size() > kMaxStatusMessageBytes) {
    return BadSection(kTagMessage, absl::StrCat("longer than ", kMaxStatusMessageBytes));
  }
  if (code > static_cast<uint32_t>(absl::StatusCode::kUnauthenticated)) {
    return BadSection(kTagResult, absl::StrCat("unknown status code ", code));
  }
  if (code == 0 && !message.empty()) return BadSection(kTagMessage, "a message without an error");
  status = absl::Status(static_cast<absl::StatusCode>(code),
                        absl::string_view(message.data(), message.size()));
  return absl::OkStatus();
}

}  // namespace

size_t MaxRowBytes(const RowRequest& row, uint32_t vocab_size) {
  size_t bytes = NumLogprobs(row) * sizeof(TokenLogprob);
  if (row.wants & kWantLogits) bytes += size_t{vocab_size} * sizeof(float);
  if ((row.wants & kWantSample) == 0) return kResultRowBytes + bytes;
  const size_t guess = (row.wants & kWantGuess) != 0 ? sizeof(TokenId) : 0;
  return kResultRowBytes + guess + row.max_tokens * (sizeof(TokenId) + bytes);
}

size_t PooledBytes(size_t num_pools, uint32_t hidden_size) {
  return num_pools * hidden_size * sizeof(double);
}

size_t MaxResultBytes(const StepDescriptor& step, uint32_t vocab_size, uint32_t hidden_size) {
  const size_t fixed = kFrameHeaderBytes + std::size(kResultTags) * kSectionHeaderBytes +
                       kResultBytes + sizeof(uint32_t);
  size_t results = PooledBytes(step.pools.size(), hidden_size);
  for (const RowRequest& row : step.rows) results += MaxRowBytes(row, vocab_size);
  return fixed + std::max(results, kMaxStatusMessageBytes);
}

void Serialize(const StepResult& result, std::vector<uint8_t>& out) {
  BeginFrame(FrameKind::kResult, out);
  WireWriter writer(out);
  writer.BeginSection(kTagResult);
  writer.Put(result.step_id.value);
  writer.Put(result.epoch.value);
  writer.Put(result.rank);
  writer.Put(static_cast<uint32_t>(result.status.code()));
  writer.Put(result.timings);
  writer.EndSection();

  const absl::string_view message = result.status.message();
  writer.BeginSection(kTagMessage);
  writer.PutBytes(message.data(), std::min(message.size(), kMaxStatusMessageBytes));
  writer.EndSection();

  writer.BeginSection(kTagResultRows);
  writer.PutCount(result.status.ok() ? result.rows.size() : 0);
  if (result.status.ok()) {
    for (const RowResult& row : result.rows) {
      writer.PutCount(row.tokens.size());
      writer.PutCount(row.logprobs.size());
      writer.PutCount(row.logits.size());
      writer.PutArray(row.tokens);
      writer.PutArray(row.logprobs);
      writer.PutArray(row.logits);
    }
  }
  writer.EndSection();

  writer.BeginSection(kTagPooled);
  if (result.status.ok()) writer.PutArray(result.pooled);
  writer.EndSection();

  writer.BeginSection(kTagGuesses);
  if (result.status.ok()) writer.PutArray(result.guesses);
  writer.EndSection();
}

absl::StatusOr<StepResult> ParseResult(std::span<const uint8_t> frame) {
  TANDEM_ASSIGN_OR_RETURN(const Sections sections,
                          Sections::Parse(frame, FrameKind::kResult, kResultTags));
  StepResult result;
  uint32_t code = 0;
  TANDEM_ASSIGN_OR_RETURN(WireReader head, sections.Find(kTagResult));
  if (!head.Get(result.step_id.value) || !head.Get(result.epoch.value) || !head.Get(result.rank) ||
      !head.Get(code) || !head.Get(result.timings)) {
    return BadSection(kTagResult, "too short");
  }
  TANDEM_RETURN_IF_ERROR(CheckConsumed(kTagResult, head));
  TANDEM_RETURN_IF_ERROR(GetStatus(sections, code, result.status));
  TANDEM_ASSIGN_OR_RETURN(WireReader rows, sections.Find(kTagResultRows));
  TANDEM_RETURN_IF_ERROR(GetResultRows(rows, result.rows));
  TANDEM_ASSIGN_OR_RETURN(WireReader pooled, sections.Find(kTagPooled));
  if (!pooled.GetRest(result.pooled)) {
    return BadSection(kTagPooled, "not a whole number of values");
  }
  TANDEM_ASSIGN_OR_RETURN(WireReader guesses, sections.Find(kTagGuesses));
  if (!guesses.GetRest(result.guesses)) {
    return BadSection(kTagGuesses, "not a whole number of ids");
  }
  const bool is_empty = result.rows.empty() && result.pooled.empty() && result.guesses.empty();
  if (!result.status.ok() && !is_empty) {
    return BadSection(kTagResultRows, "a failed step has results");
  }
  return result;
}

}  // namespace tandem::step
