// Strong ids: a block is never passed where a sequence slot is meant.
#ifndef TANDEM_COMMON_BASE_IDS_H_
#define TANDEM_COMMON_BASE_IDS_H_

#include <compare>
#include <cstdint>
#include <functional>
#include <ostream>

namespace tandem {

// `Tag` only distinguishes types. Comparable, hashable, printable.
template <typename Tag, typename Rep>
struct StrongId {
  Rep value{};

  friend auto operator<=>(const StrongId&, const StrongId&) = default;
  friend std::ostream& operator<<(std::ostream& out, StrongId id) { return out << id.value; }
  template <typename H>
  friend H AbslHashValue(H state, StrongId id) {
    return H::combine(std::move(state), id.value);
  }
};

// A token of the vocabulary. Plain, because kernels and codecs carry millions of them.
using TokenId = int32_t;
// A physical KV block of one KV group: index into the worker's pages.
using BlockId = int32_t;
// A block released by a sliding window (or padding of a block table): must not be read or written.
inline constexpr BlockId kNoBlock = -1;

// One incarnation of the worker group; every restart or reconfiguration gets a higher one.
using Epoch = StrongId<struct EpochTag, uint64_t>;
// Steps count up from 1 within an epoch.
using StepId = StrongId<struct StepTag, uint64_t>;

}  // namespace tandem

template <typename Tag, typename Rep>
struct std::hash<tandem::StrongId<Tag, Rep>> {
  size_t operator()(tandem::StrongId<Tag, Rep> id) const noexcept {
    return std::hash<Rep>()(id.value);
  }
};

#endif  // TANDEM_COMMON_BASE_IDS_H_
