// Little-endian reading and writing of flat frames. The reader checks every access against the
// frame, and a count against the remaining bytes before allocating for it. Internal to common/step.
#ifndef TANDEM_COMMON_STEP_WIRE_H_
#define TANDEM_COMMON_STEP_WIRE_H_

#include <bit>
#include <cstdint>
#include <cstring>
#include <span>
#include <type_traits>
#include <vector>

namespace tandem::step {

// Values and arrays are copied as in memory.
static_assert(std::endian::native == std::endian::little, "the wire form is little-endian");

template <typename T>
concept WireValue = std::is_trivially_copyable_v<T> && !std::is_pointer_v<T>;

// Appends to the caller's vector.
class WireWriter {
 public:
  explicit WireWriter(std::vector<uint8_t>& out) : out_(out) {}

  template <WireValue T>
  void Put(T value) {
    PutBytes(&value, sizeof(T));
  }
  template <WireValue T>
  void PutArray(const std::vector<T>& values) {
    PutBytes(values.data(), values.size() * sizeof(T));
  }
  void PutCount(size_t count) { Put(static_cast<uint32_t>(count)); }
  void PutBytes(const void* data, size_t bytes) {
    if (bytes == 0) return;
    const size_t at = out_.size();
    out_.resize(at + bytes);
    std::memcpy(out_.data() + at, data, bytes);
  }

  // A section is (tag, length, bytes); EndSection fills in the length.
  void BeginSection(uint32_t tag) {
    Put(tag);
    length_at_ = out_.size();
    Put(uint32_t{0});
  }
  void EndSection() {
    const auto length = static_cast<uint32_t>(out_.size() - length_at_ - sizeof(uint32_t));
    std::memcpy(out_.data() + length_at_, &length, sizeof(length));
  }

 private:
  std::vector<uint8_t>& out_;
  size_t length_at_ = 0;
};

// Every call returns false, and reads nothing, if the bytes are missing.
class WireReader {
 public:
  explicit WireReader(std::span<const uint8_t> bytes) : bytes_(bytes) {}

  size_t left() const { return bytes_.size(); }

  template <WireValue T>
  bool Get(T& value) {
    if (left() < sizeof(T)) return false;
    std::memcpy(&value, bytes_.data(), sizeof(T));
    bytes_ = bytes_.subspan(sizeof(T));
    return true;
  }
  template <WireValue T>
  bool GetArray(size_t count, std::vector<T>& values) {
    if (count > left() / sizeof(T)) return false;
    values.resize(count);
    if (count > 0) std::memcpy(values.data(), bytes_.data(), count * sizeof(T));
    bytes_ = bytes_.subspan(count * sizeof(T));
    return true;
  }
  // A count of items of at least `min_bytes` each.
  bool GetCount(size_t min_bytes, uint32_t& count) {
    return Get(count) && count <= left() / min_bytes;
  }
  bool GetSpan(size_t bytes, std::span<const uint8_t>& span) {
    if (bytes > left()) return false;
    span = bytes_.first(bytes);
    bytes_ = bytes_.subspan(bytes);
    return true;
  }
  // All remaining bytes as one array; false if they are not a whole number of values.
  template <WireValue T>
  bool GetRest(std::vector<T>& values) {
    return left() % sizeof(T) == 0 && GetArray(left() / sizeof(T), values);
  }

 private:
  std::span<const uint8_t> bytes_;
};

}  // namespace tandem::step

#endif  // TANDEM_COMMON_STEP_WIRE_H_
