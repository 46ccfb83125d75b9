// Software prefetch of weights.
#ifndef TANDEM_KERNELS_CPU_MATMUL_READ_AHEAD_H_
#define TANDEM_KERNELS_CPU_MATMUL_READ_AHEAD_H_

#include <cstddef>
#include <cstdint>

namespace tandem::kernels::cpu {

inline constexpr size_t kLine = 64;         // of a cache
inline constexpr int kInL1 = 3, kInL2 = 2;  // localities of __builtin_prefetch

// Reads ahead in each row of a group, and at the rows' end in the group after it, so that memory
// bandwidth stays in use while sixteen short rows are read side by side.
template <class S>
class ReadAhead {
 public:
  // `row_bytes`: bytes of each row that will be read; `stride`: bytes between rows.
  [[gnu::always_inline]] ReadAhead(size_t row_bytes, uint64_t stride)
      : row_bytes_(row_bytes), next_group_(S::kLanes * stride - row_bytes) {}

  // Before the first group of a task.
  [[gnu::always_inline]] void Start(const typename S::Rows& rows) const {
    const size_t end = kAhead < row_bytes_ ? kAhead : row_bytes_;
    for (int lane = 0; lane < S::kLanes; ++lane) {
      for (size_t at = 0; at < end; at += kLine) Fetch(rows.row[lane] + at);
    }
  }

  // While the `bytes` from `offset` on are unpacked. `last`: no group comes after this one.
  [[gnu::always_inline]] void Next(const typename S::Rows& rows, size_t offset, size_t bytes,
                                   bool last) const {
    size_t ahead = offset + kAhead;
    if (ahead >= row_bytes_) {
      if (last) return;
      ahead += next_group_;
    }
#pragma GCC unroll 16
    for (int lane = 0; lane < S::kLanes; ++lane) {
      for (size_t at = 0; at < bytes; at += kLine) Fetch(rows.row[lane] + ahead + at);
    }
  }

 private:
  static constexpr size_t kAhead = 512;

  [[gnu::always_inline]] static void Fetch(const std::byte* p) { __builtin_prefetch(p, 0, kInL1); }

  size_t row_bytes_;
  size_t next_group_;
};

// Where there is nothing to prefetch.
struct NothingAhead {
  [[gnu::always_inline]] void Fetch() {}
};

// Prefetches the next pieces of one or two panels to the L2 cache a few lines at a time, while the
// current ones are multiplied: memory stays in use then. If there is more time than they need, they
// come last, so that nothing drives them out again.
class PiecesAhead {
 public:
  // `bytes` from `begin` on, and as many `stride` bytes later if there are two, by `calls` of
  // Fetch.
  PiecesAhead(const std::byte* begin, size_t bytes, size_t stride, int panels, uint32_t calls)
      : at_(begin),
        lines_((bytes + kLine * calls - 1) / (kLine * calls)),
        stride_(panels > 1 ? stride : 0),
        calls_before_(lines_ == 0 ? 0 : calls - (bytes + kLine * lines_ - 1) / (kLine * lines_)) {}

  // The panel at `now`, of which `bytes` are read per call, goes to the L1 cache, too, `ahead`
  // bytes before its use.
  void FetchNear(const std::byte* now, size_t bytes, size_t ahead) {
    near_ = now + ahead;
    near_bytes_ = bytes;
  }

  [[gnu::always_inline]] void Fetch() {
    if (near_ != nullptr) {
      for (size_t at = 0; at < near_bytes_; at += kLine) __builtin_prefetch(near_ + at, 0, kInL1);
      near_ += near_bytes_;
    }
    if (calls_before_ > 0) {
      --calls_before_;
      return;
    }
    for (size_t i = 0; i < lines_; ++i) {
      __builtin_prefetch(at_ + i * kLine, 0, kInL2);
      if (stride_ > 0) __builtin_prefetch(at_ + i * kLine + stride_, 0, kInL2);
    }
    at_ += lines_ * kLine;
  }

 private:
  const std::byte* near_ = nullptr;
  size_t near_bytes_ = 0;
  const std::byte* at_;
  size_t lines_;  // of each panel per call
  size_t stride_;
  uint64_t calls_before_;  // the first one
};

inline constexpr int kPairPanels = 2;
inline constexpr size_t kMostOfPair = 256;  // bytes of each panel per call of PairAhead

// As PiecesAhead, two panels by many calls, to the cache that kLocality names: evenly, some lines
// again, without a loop. With one, products of some numbers of tokens took a fifth longer
// (docs/performance.md).
template <int kLocality>
class PairAhead {
 public:
  [[gnu::always_inline]] PairAhead(const std::byte* begin, size_t bytes, size_t stride,
                                   int /*panels*/, uint32_t calls)
      : at_(begin), stride_(stride), step_((bytes + calls - 1) / calls) {}

  [[gnu::always_inline]] void Fetch() {
    const std::byte* const second = at_ + stride_;
#pragma GCC unroll 4
    for (size_t i = 0; i < kMostOfPair; i += kLine) {
      __builtin_prefetch(at_ + i, 0, kLocality);
      __builtin_prefetch(second + i, 0, kLocality);
    }
    at_ += step_;
  }

 private:
  const std::byte* at_;
  size_t stride_;
  size_t step_;
};

}  // namespace tandem::kernels::cpu

#endif  // TANDEM_KERNELS_CPU_MATMUL_READ_AHEAD_H_
