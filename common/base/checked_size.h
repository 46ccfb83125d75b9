// Overflow-checked sizes for values from untrusted files and peers.
#ifndef TANDEM_COMMON_BASE_CHECKED_SIZE_H_
#define TANDEM_COMMON_BASE_CHECKED_SIZE_H_

#include <cstdint>
#include <optional>

namespace tandem {

// A uint64 that records overflow. value() is empty once an operation overflowed.
class CheckedSize {
 public:
  constexpr CheckedSize(uint64_t value) : value_(value) {}  // NOLINT: sizes convert freely

  constexpr CheckedSize& operator+=(CheckedSize other) {
    overflow_ |= other.overflow_ | __builtin_add_overflow(value_, other.value_, &value_);
    return *this;
  }
  constexpr CheckedSize& operator*=(CheckedSize other) {
    overflow_ |= other.overflow_ | __builtin_mul_overflow(value_, other.value_, &value_);
    return *this;
  }
  friend constexpr CheckedSize operator+(CheckedSize a, CheckedSize b) { return a += b; }
  friend constexpr CheckedSize operator*(CheckedSize a, CheckedSize b) { return a *= b; }

  constexpr bool ok() const { return !overflow_; }
  constexpr std::optional<uint64_t> value() const {
    return overflow_ ? std::nullopt : std::optional<uint64_t>(value_);
  }
  // True when no overflow happened and the size is at most `limit`.
  constexpr bool FitsIn(uint64_t limit) const { return !overflow_ && value_ <= limit; }

 private:
  uint64_t value_;
  bool overflow_ = false;
};

}  // namespace tandem

#endif  // TANDEM_COMMON_BASE_CHECKED_SIZE_H_
