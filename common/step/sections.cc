#include "common/step/sections.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "common/base/strings.h"

namespace tandem::step {
namespace {

absl::Status BadFrame(FrameKind kind, std::string_view what) {
  return absl::InvalidArgumentError(absl::StrCat(Sv(FrameName(kind)), " frame: ", Sv(what)));
}

absl::Status CheckHeader(WireReader& reader, FrameKind kind) {
  uint32_t magic = 0, version = 0, found = 0;
  if (!reader.Get(magic) || !reader.Get(version) || !reader.Get(found)) {
    return BadFrame(kind, "truncated inside its header");
  }
  if (magic != kMagic) {
    return BadFrame(kind, absl::StrCat("magic is ", absl::Hex(magic), ", not ", absl::Hex(kMagic)));
  }
  if (version != kVersion) {
    return BadFrame(kind, absl::StrCat("version ", version, " is not ", kVersion));
  }
  if (found != static_cast<uint32_t>(kind)) {
    return BadFrame(
        kind, absl::StrCat("the frame is of kind ", found, ", not ", static_cast<uint32_t>(kind)));
  }
  return absl::OkStatus();
}

}  // namespace

std::string_view FrameName(FrameKind kind) {
  switch (kind) {
    case FrameKind::kDescriptor:
      return "step descriptor";
    case FrameKind::kResult:
      return "step result";
  }
  return "unknown";
}

std::string_view SectionName(uint32_t tag) {
  switch (tag) {
    case kTagStep:
      return "step";
    case kTagTokens:
      return "tokens";
    case kTagPositions:
      return "positions";
    case kTagQueryOffsets:
      return "query offsets";
    case kTagSequences:
      return "sequences";
    case kTagGroups:
      return "KV groups";
    case kTagRows:
      return "rows";
    case kTagSampling:
      return "sampling";
    case kTagReferences:
      return "references";
    case kTagPools:
      return "pools";
    case kTagResult:
      return "result";
    case kTagMessage:
      return "message";
    case kTagResultRows:
      return "result rows";
    case kTagPooled:
      return "pooled states";
    case kTagGuesses:
      return "guesses";
  }
  return "unknown";
}

void BeginFrame(FrameKind kind, std::vector<uint8_t>& out) {
  out.clear();
  WireWriter writer(out);
  writer.Put(kMagic);
  writer.Put(kVersion);
  writer.Put(kind);
}

absl::StatusOr<Sections> Sections::Parse(std::span<const uint8_t> frame, FrameKind kind,
                                         std::span<const SectionTag> allowed) {
  WireReader reader(frame);
  if (absl::Status status = CheckHeader(reader, kind); !status.ok()) return status;
  Sections sections;
  sections.kind_ = kind;
  uint32_t last = 0;
  while (reader.left() > 0) {
    uint32_t tag = 0, length = 0;
    std::span<const uint8_t> bytes;
    if (!reader.Get(tag) || !reader.Get(length)) {
      return BadFrame(kind, absl::StrCat(reader.left(), " trailing bytes"));
    }
    if (std::find(allowed.begin(), allowed.end(), tag) == allowed.end()) {
      return BadFrame(kind, absl::StrCat("unknown section ", tag));
    }
    if (tag <= last) {
      return BadFrame(kind, absl::StrCat("section ", tag, " is repeated or after section ", last));
    }
    if (!reader.GetSpan(length, bytes)) {
      return BadFrame(kind, absl::StrCat("section ", tag, " states ", length, " bytes, ",
                                         reader.left(), " are left"));
    }
    sections.sections_[tag] = bytes;
    last = tag;
  }
  return sections;
}

absl::StatusOr<WireReader> Sections::Find(SectionTag tag) const {
  if (!Has(tag)) {
    return BadFrame(kind_, absl::StrCat("the ", Sv(SectionName(tag)), " section is missing"));
  }
  return WireReader(*sections_[tag]);
}

absl::Status BadSection(SectionTag tag, std::string_view what) {
  return absl::InvalidArgumentError(absl::StrCat("section ", Sv(SectionName(tag)), ": ", Sv(what)));
}

absl::Status CheckConsumed(SectionTag tag, const WireReader& reader) {
  if (reader.left() == 0) return absl::OkStatus();
  return BadSection(tag, absl::StrCat(reader.left(), " trailing bytes"));
}

}  // namespace tandem::step
