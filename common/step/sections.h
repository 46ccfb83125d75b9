// The outer form of every step frame: magic, version, kind of frame, then tagged sections in
// ascending order of tag. One form per value: a frame that decodes encodes to the same bytes again.
// Internal to common/step.
#ifndef TANDEM_COMMON_STEP_SECTIONS_H_
#define TANDEM_COMMON_STEP_SECTIONS_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/step/wire.h"

namespace tandem::step {

inline constexpr uint32_t kMagic = 0x504d4454;  // "TDMP"
inline constexpr uint32_t kVersion = 11;
inline constexpr size_t kFrameHeaderBytes = 3 * sizeof(uint32_t);    // magic, version, kind
inline constexpr size_t kSectionHeaderBytes = 2 * sizeof(uint32_t);  // tag, length

enum class FrameKind : uint32_t { kDescriptor = 1, kResult = 2 };

enum SectionTag : uint32_t {
  kTagStep = 1,
  kTagTokens = 2,
  kTagPositions = 3,
  kTagQueryOffsets = 4,
  kTagSequences = 5,
  kTagGroups = 6,
  kTagRows = 7,
  kTagSampling = 8,
  kTagReferences = 9,
  kTagPools = 10,
  kTagResult = 16,
  kTagMessage = 17,
  kTagResultRows = 18,
  kTagPooled = 19,
  kTagGuesses = 20,
};
inline constexpr uint32_t kMaxTag = 31;

// For error texts.
std::string_view FrameName(FrameKind kind);
std::string_view SectionName(uint32_t tag);

// Replaces `out` by the header of a frame.
void BeginFrame(FrameKind kind, std::vector<uint8_t>& out);

// The sections of a checked frame, by tag.
class Sections {
 public:
  // INVALID_ARGUMENT: wrong magic, version or kind; truncated; a tag outside `allowed`, twice or
  // out of order.
  static absl::StatusOr<Sections> Parse(std::span<const uint8_t> frame, FrameKind kind,
                                        std::span<const SectionTag> allowed);

  bool Has(SectionTag tag) const { return sections_[tag].has_value(); }
  // A reader of that section; INVALID_ARGUMENT when the frame lacks it.
  absl::StatusOr<WireReader> Find(SectionTag tag) const;

 private:
  FrameKind kind_{};
  std::array<std::optional<std::span<const uint8_t>>, kMaxTag + 1> sections_;
};

// INVALID_ARGUMENT naming the section and the defect.
absl::Status BadSection(SectionTag tag, std::string_view what);
// OK when the whole section was read.
absl::Status CheckConsumed(SectionTag tag, const WireReader& reader);

}  // namespace tandem::step

#endif  // TANDEM_COMMON_STEP_SECTIONS_H_
