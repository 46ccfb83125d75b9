#include "common/step/codec.h"

#include <algorithm>
#include <iterator>

#include "absl/strings/str_cat.h"
#include "common/base/status.h"
#include "common/base/strings.h"
#include "common/step/sections.h"
#include "common/step/token_mask.h"

namespace tandem::step {
namespace {

constexpr SectionTag kDescriptorTags[] = {
    kTagStep,   kTagTokens, kTagPositions, kTagQueryOffsets, kTagSequences,
    kTagGroups, kTagRows,   kTagSampling,  kTagReferences,   kTagPools};

// Smallest wire sizes, against which counts are checked.
constexpr size_t kStepBytes = 2 * sizeof(uint64_t) + 4 * sizeof(uint32_t);
constexpr size_t kGroupBytes = 3 * sizeof(uint32_t);
constexpr size_t kRowBytes = 5 * sizeof(uint32_t);
constexpr size_t kSamplingBytes = 9 * sizeof(uint32_t) + 2 * sizeof(uint64_t);
static_assert(sizeof(SequenceEntry) == 32, "sequences are copied as in memory");
static_assert(sizeof(TableDelta) == 12, "deltas are copied as in memory");
static_assert(sizeof(LogitAdjustment) == 16, "adjustments are copied as in memory");
static_assert(sizeof(TokenReference) == 8, "references are copied as in memory");
static_assert(sizeof(PoolRequest) == 8, "pools are copied as in memory");

void PutStep(WireWriter& writer, const StepDescriptor& step) {
  writer.BeginSection(kTagStep);
  writer.Put(step.step_id.value);
  writer.Put(step.epoch.value);
  writer.Put(step.kind);
  writer.Put(step.num_scheduled_tokens);
  writer.Put(step.num_seqs_active);
  writer.Put(uint32_t{step.skips_guesser});
  writer.EndSection();
}

absl::Status GetStep(WireReader reader, StepDescriptor& step) {
  uint32_t kind = 0, skips_guesser = 0;
  if (!reader.Get(step.step_id.value) || !reader.Get(step.epoch.value) || !reader.Get(kind) ||
      !reader.Get(step.num_scheduled_tokens) || !reader.Get(step.num_seqs_active) ||
      !reader.Get(skips_guesser)) {
    return BadSection(kTagStep, "too short");
  }
  if (kind < static_cast<uint32_t>(StepKind::kPrefill) ||
      kind > static_cast<uint32_t>(StepKind::kMixed)) {
    return BadSection(kTagStep, absl::StrCat("step kind ", kind, " is not 1, 2 or 3"));
  }
  step.kind = static_cast<StepKind>(kind);
  if (skips_guesser > 1) {
    return BadSection(kTagStep, absl::StrCat("skips_guesser is ", skips_guesser, ", not 0 or 1"));
  }
  step.skips_guesser = skips_guesser == 1;
  return CheckConsumed(kTagStep, reader);
}

template <typename T>
void PutArraySection(WireWriter& writer, SectionTag tag, const std::vector<T>& values) {
  writer.BeginSection(tag);
  writer.PutArray(values);
  writer.EndSection();
}

template <typename T>
absl::Status GetArraySection(const Sections& sections, SectionTag tag, std::vector<T>& values) {
  TANDEM_ASSIGN_OR_RETURN(WireReader reader, sections.Find(tag));
  if (!reader.GetRest(values)) {
    return BadSection(tag, absl::StrCat(reader.left(), " bytes are no whole number of ", sizeof(T),
                                        "-byte values"));
  }
  return absl::OkStatus();
}

void PutGroups(WireWriter& writer, const std::vector<GroupDeltas>& groups) {
  writer.BeginSection(kTagGroups);
  writer.PutCount(groups.size());
  for (const GroupDeltas& group : groups) {
    writer.PutCount(group.tables.size());
    writer.PutCount(group.blocks.size());
    writer.PutCount(group.slot_mapping.size());
    writer.PutArray(group.tables);
    writer.PutArray(group.blocks);
    writer.PutArray(group.slot_mapping);
  }
  writer.EndSection();
}

absl::Status GetGroups(WireReader reader, std::vector<GroupDeltas>& groups) {
  uint32_t count = 0;
  if (!reader.GetCount(kGroupBytes, count))
    return BadSection(kTagGroups, "count exceeds the frame");
  groups.resize(count);
  for (GroupDeltas& group : groups) {
    uint32_t tables = 0, blocks = 0, slots = 0;
    if (!reader.Get(tables) || !reader.Get(blocks) || !reader.Get(slots) ||
        !reader.GetArray(tables, group.tables) || !reader.GetArray(blocks, group.blocks) ||
        !reader.GetArray(slots, group.slot_mapping)) {
      return BadSection(kTagGroups, "count exceeds the frame");
    }
  }
  return CheckConsumed(kTagGroups, reader);
}

void PutRows(WireWriter& writer, const std::vector<RowRequest>& rows) {
  writer.BeginSection(kTagRows);
  writer.PutCount(rows.size());
  for (const RowRequest& row : rows) {
    writer.Put(row.token);
    writer.Put(row.wants);
    writer.Put(row.max_tokens);
    writer.Put(row.top_n);
    writer.PutCount(row.logprobs_of.size());
    writer.PutArray(row.logprobs_of);
  }
  writer.EndSection();
}

absl::Status GetRows(WireReader reader, std::vector<RowRequest>& rows) {
  uint32_t count = 0;
  if (!reader.GetCount(kRowBytes, count)) return BadSection(kTagRows, "count exceeds the frame");
  rows.resize(count);
  for (RowRequest& row : rows) {
    uint32_t ids = 0;
    if (!reader.Get(row.token) || !reader.Get(row.wants) || !reader.Get(row.max_tokens) ||
        !reader.Get(row.top_n) || !reader.Get(ids) || !reader.GetArray(ids, row.logprobs_of)) {
      return BadSection(kTagRows, "count exceeds the frame");
    }
  }
  return CheckConsumed(kTagRows, reader);
}

void PutSampling(WireWriter& writer, const std::vector<RowSampling>& sampling) {
  writer.BeginSection(kTagSampling);
  writer.PutCount(sampling.size());
  for (const RowSampling& row : sampling) {
    writer.Put(row.temperature);
    writer.Put(row.top_p);
    writer.Put(row.min_p);
    writer.Put(row.top_k);
    writer.Put(row.seed);
    writer.Put(row.position);
    writer.Put(row.typical_p);
    writer.Put(row.xtc_probability);
    writer.Put(row.xtc_threshold);
    writer.PutCount(row.adjustments.size());
    writer.PutArray(row.adjustments);
    writer.PutCount(row.allowed.size());
    writer.PutArray(row.allowed);
  }
  writer.EndSection();
}

absl::Status GetSampling(WireReader reader, std::vector<RowSampling>& sampling) {
  uint32_t count = 0;
  if (!reader.GetCount(kSamplingBytes, count)) {
    return BadSection(kTagSampling, "count exceeds the frame");
  }
  sampling.resize(count);
  for (RowSampling& row : sampling) {
    uint32_t adjustments = 0, mask_words = 0;
    if (!reader.Get(row.temperature) || !reader.Get(row.top_p) || !reader.Get(row.min_p) ||
        !reader.Get(row.top_k) || !reader.Get(row.seed) || !reader.Get(row.position) ||
        !reader.Get(row.typical_p) || !reader.Get(row.xtc_probability) ||
        !reader.Get(row.xtc_threshold) || !reader.Get(adjustments) ||
        !reader.GetArray(adjustments, row.adjustments) || !reader.Get(mask_words) ||
        !reader.GetArray(mask_words, row.allowed)) {
      return BadSection(kTagSampling, "count exceeds the frame");
    }
  }
  return CheckConsumed(kTagSampling, reader);
}

}  // namespace

size_t StepLimits::MaxDescriptorBytes() const {
  constexpr size_t kWord = sizeof(uint32_t);
  const size_t tokens = max_tokens, seqs = max_seqs, samples = MaxSamples();
  const size_t group = kGroupBytes + seqs * sizeof(TableDelta) + tokens * kWord;
  // The result bounds what rows may ask for: a row, and an id of it, takes more there.
  const size_t rows = std::min(tokens * (kRowBytes + kMaxLogprobsOf * kWord), 2 * max_result_bytes);
  return kFrameHeaderBytes + std::size(kDescriptorTags) * kSectionHeaderBytes + kStepBytes +
         2 * tokens * kWord + (seqs + 1) * kWord + seqs * sizeof(SequenceEntry) +  //
         kWord + model::kMaxKvGroups * group + MaxAppendedBlocks() * kWord +       //
         kWord + rows +                                                            //
         kWord +
         samples * (kSamplingBytes + kMaxRowAdjustments * sizeof(LogitAdjustment) +
                    MaskWords(kMaxMaskedVocabulary) * kWord) +
         seqs * (sizeof(TokenReference) + sizeof(PoolRequest));
}

void Serialize(const StepDescriptor& step, std::vector<uint8_t>& out) {
  BeginFrame(FrameKind::kDescriptor, out);
  WireWriter writer(out);
  PutStep(writer, step);
  PutArraySection(writer, kTagTokens, step.tokens);
  PutArraySection(writer, kTagPositions, step.positions);
  PutArraySection(writer, kTagQueryOffsets, step.query_offsets);
  PutArraySection(writer, kTagSequences, step.sequences);
  PutGroups(writer, step.groups);
  PutRows(writer, step.rows);
  PutSampling(writer, step.sampling);
  PutArraySection(writer, kTagReferences, step.references);
  PutArraySection(writer, kTagPools, step.pools);
}

absl::StatusOr<StepDescriptor> ParseDescriptor(std::span<const uint8_t> frame) {
  TANDEM_ASSIGN_OR_RETURN(const Sections sections,
                          Sections::Parse(frame, FrameKind::kDescriptor, kDescriptorTags));
  StepDescriptor step;
  TANDEM_ASSIGN_OR_RETURN(WireReader head, sections.Find(kTagStep));
  TANDEM_RETURN_IF_ERROR(GetStep(head, step));
  TANDEM_RETURN_IF_ERROR(GetArraySection(sections, kTagTokens, step.tokens));
  TANDEM_RETURN_IF_ERROR(GetArraySection(sections, kTagPositions, step.positions));
  TANDEM_RETURN_IF_ERROR(GetArraySection(sections, kTagQueryOffsets, step.query_offsets));
  TANDEM_RETURN_IF_ERROR(GetArraySection(sections, kTagSequences, step.sequences));
  TANDEM_ASSIGN_OR_RETURN(WireReader groups, sections.Find(kTagGroups));
  TANDEM_RETURN_IF_ERROR(GetGroups(groups, step.groups));
  TANDEM_ASSIGN_OR_RETURN(WireReader rows, sections.Find(kTagRows));
  TANDEM_RETURN_IF_ERROR(GetRows(rows, step.rows));
  TANDEM_ASSIGN_OR_RETURN(WireReader sampling, sections.Find(kTagSampling));
  TANDEM_RETURN_IF_ERROR(GetSampling(sampling, step.sampling));
  TANDEM_RETURN_IF_ERROR(GetArraySection(sections, kTagReferences, step.references));
  TANDEM_RETURN_IF_ERROR(GetArraySection(sections, kTagPools, step.pools));
  return step;
}

}  // namespace tandem::step
