// Where kernels read a weight: in rows, as in the file, or in panels (kernels/host/panels.h). Both
// give the same words, one row per lane, so that a format is unpacked by the same code from either.
//
// A source stands for the S::kLanes rows from one row on:
//   Block<Block>(i)    block i of each row, as formats read it: Words<n>(at), which has n words of
//                      the block from byte `at` on (transposed at once, or read where they are
//                      used); Load32 and Load16, 32 or 16 bytes as words; LoadWord, LoadHalf,
//                      LoadByte
//   Values<T>(col)     the same of plain values of type T from column `col` on
//   Ahead              prefetches while blocks are unpacked in ascending order
#ifndef TANDEM_KERNELS_CPU_MATMUL_WEIGHT_SOURCE_H_
#define TANDEM_KERNELS_CPU_MATMUL_WEIGHT_SOURCE_H_

#include <cstddef>
#include <cstdint>

#include "kernels/cpu/matmul/product.h"
#include "kernels/cpu/matmul/read_ahead.h"
#include "kernels/cpu/matmul/rows.h"
#include "kernels/host/panels.h"

namespace tandem::kernels::cpu {

// Whether products, but for pairs of panels with few tokens (loop_choice.h), read panels of a
// format as they are: never; with few tokens, unpacking words in registers anew for each set of
// tokens, which costs less than a copy; or always, as words need little or no unpacking.
enum class InPlaceUse : uint8_t { kNever, kUnpacking, kAlways };

template <class S, int kWords>
struct WordsOfRows {
  [[gnu::always_inline]] typename S::Int operator[](int i) const { return word[i]; }

  typename S::Int word[kWords];
};

// Bytes from `offset` on of each row.
template <class S, size_t kBytes>
class BytesOfRows {
 public:
  using Int = typename S::Int;
  [[gnu::always_inline]] BytesOfRows(const typename S::Rows& rows, size_t offset)
      : rows_(rows), offset_(offset) {}

  [[gnu::always_inline]] void Load32(size_t at, Int* out) const {
    S::Load32(rows_, offset_ + at, out);
  }
  [[gnu::always_inline]] void Load16(size_t at, Int* out) const {
    S::Load16(rows_, offset_ + at, out);
  }
  [[gnu::always_inline]] Int LoadWord(size_t at) const { return S::LoadWord(rows_, offset_ + at); }
  template <int kWords>
  [[gnu::always_inline]] WordsOfRows<S, kWords> Words(size_t at) const {
    static_assert(kWords == 4 || kWords == 8);
    WordsOfRows<S, kWords> words;
    if constexpr (kWords == 4) {
      Load16(at, words.word);
    } else {
      Load32(at, words.word);
    }
    return words;
  }
  template <size_t kAt>
  [[gnu::always_inline]] typename S::Float LoadHalf() const {
    // Nothing is read past the block: it may be the last of the file.
    if constexpr (kAt + 4 <= kBytes) return S::HalfToFloat(LoadWord(kAt));
    return S::HalfToFloat(S::template ShiftRight<16>(LoadWord(kAt - 2)));
  }
  template <size_t kAt>
  [[gnu::always_inline]] Int LoadByte() const {
    static_assert(kAt + 4 <= kBytes);
    return S::template Byte<0>(LoadWord(kAt));
  }

 private:
  const typename S::Rows& rows_;
  size_t offset_;
};

template <class S>
class RowSource {
 public:
  static constexpr bool kPanels = false;  // a row of plain values may end anywhere

  RowSource(const Product& p, uint32_t row) : RowSource(p.weights, p.stride_bytes, row, p.rows) {}
  RowSource(const std::byte* weights, uint64_t stride, uint32_t row, uint32_t rows) {
    PointAtRows<S::kLanes>(weights, stride, row, rows, &rows_);
  }

  template <class BlockT>
  [[gnu::always_inline]] BytesOfRows<S, sizeof(BlockT)> Block(uint32_t i) const {
    return {rows_, i * sizeof(BlockT)};
  }
  template <class T>
  [[gnu::always_inline]] BytesOfRows<S, sizeof(T)> Values(uint32_t col) const {
    return {rows_, size_t{col} * sizeof(T)};
  }
  const typename S::Rows& rows() const { return rows_; }

  // `bytes` of each row per step.
  class Ahead {
   public:
    [[gnu::always_inline]] Ahead(const Product& p, uint32_t steps, size_t bytes,
                                 PanelAhead /*panels*/ = kToL2ThenL1)
        : ahead_(steps * bytes, p.stride_bytes), bytes_(bytes) {}
    [[gnu::always_inline]] void Start(const RowSource& source) const {
      ahead_.Start(source.rows());
    }
    [[gnu::always_inline]] void Next(const RowSource& source, uint32_t step, bool last) const {
      ahead_.Next(source.rows(), step * bytes_, bytes_, last);
    }

    // Rows are read ahead as they are unpacked.
    [[gnu::always_inline]] void NextOfPiece(const RowSource& source, uint32_t step,
                                            bool last) const {
      Next(source, step, last);
    }
    NothingAhead Beside(const Product& /*p*/, uint32_t /*row*/, uint32_t /*step*/,
                        uint32_t /*steps*/, int /*groups*/, uint32_t /*calls*/) const {
      return {};
    }

   private:
    ReadAhead<S> ahead_;
    size_t bytes_;
  };

 private:
  typename S::Rows rows_;
};

template <class S>
struct WordsOfPanel {
  [[gnu::always_inline]] typename S::Int operator[](int i) const {
    return S::LoadLanes(first + i * (sizeof(uint32_t) * S::kLanes));
  }

  const std::byte* first;
};

// Bytes of each row in a panel: words at `words`, odd bytes (of which a block has kOdd, at kOddAt)
// at `odd`.
template <class S, size_t kOdd, size_t kOddAt>
class BytesOfPanel {
 public:
  using Int = typename S::Int;
  [[gnu::always_inline]] BytesOfPanel(const std::byte* words, const std::byte* odd)
      : words_(words), odd_(odd) {}

  // The same bytes of the rows `bytes` after these.
  [[gnu::always_inline]] BytesOfPanel After(size_t bytes) const {
    return {words_ + bytes, kOdd > 0 ? odd_ + bytes : odd_};
  }

  [[gnu::always_inline]] void Load32(size_t at, Int* out) const { Load<8>(at, out); }
  [[gnu::always_inline]] void Load16(size_t at, Int* out) const { Load<4>(at, out); }
  [[gnu::always_inline]] Int LoadWord(size_t at) const { return S::LoadLanes(WordAt(at)); }
  template <int /*kWords*/>
  [[gnu::always_inline]] WordsOfPanel<S> Words(size_t at) const {
    return {WordAt(at)};
  }
  template <size_t kAt>
  [[gnu::always_inline]] typename S::Float LoadHalf() const {
    if constexpr (kOdd == 2 && kAt == kOddAt) return S::LoadHalves(odd_);
    static_assert(kOdd == 2 || kAt % 4 == 0);
    return S::HalfToFloat(LoadWord(kAt));
  }
  template <size_t kAt>
  [[gnu::always_inline]] Int LoadByte() const {
    static_assert(kOdd == 1 && kAt == kOddAt);
    return S::LoadByteLanes(odd_);
  }

 private:
  [[gnu::always_inline]] const std::byte* WordAt(size_t at) const {
    return words_ + (kOdd > 0 && at > kOddAt ? at - kOdd : at) * S::kLanes;
  }
  template <int kWords>
  [[gnu::always_inline]] void Load(size_t at, Int* out) const {
#pragma GCC unroll 8
    for (int j = 0; j < kWords; ++j) out[j] = LoadWord(at + 4 * j);
  }

  const std::byte* words_;
  const std::byte* odd_;
};

template <class S>
class PanelSource {
 public:
  static constexpr bool kPanels = true;

  [[gnu::always_inline]] PanelSource(const Product& p, uint32_t row)
      : panel_(p.weights + row * p.stride_bytes), cols_(p.cols) {}

  template <class BlockT>
  [[gnu::always_inline]] auto Block(size_t i) const {
    constexpr size_t kOdd = sizeof(BlockT) % host::kWordBytes;
    constexpr size_t kOddAt = OddAt<BlockT>();
    constexpr size_t kGroup = host::kGroupBlocks;
    constexpr size_t kRows = S::kLanes;
    if constexpr (kOdd == 0) {
      return BytesOfPanel<S, 0, 0>(panel_ + i * sizeof(BlockT) * kRows, nullptr);
    } else {
      // A group begins (i - in) whole blocks after the panel; its odd bytes come first.
      const size_t in = i % kGroup;
      const size_t left = cols_ / BlockT::kValues - (i - in);
      const size_t blocks = left < kGroup ? left : kGroup;
      const std::byte* const block = panel_ + i * sizeof(BlockT) * kRows;
      return BytesOfPanel<S, kOdd, kOddAt>(block + blocks * (kOdd * kRows) - in * (kOdd * kRows),
                                           block - in * ((sizeof(BlockT) - kOdd) * kRows));
    }
  }
  template <class T>
  [[gnu::always_inline]] BytesOfPanel<S, 0, 0> Values(uint32_t col) const {
    return {panel_ + size_t{col} * sizeof(T) * S::kLanes, nullptr};
  }
  const std::byte* panel() const { return panel_; }

  // A panel is one stream, and the next panel continues it: from memory to the L2 cache well ahead,
  // from there to L1 shortly before use, or to L1 alone (Product::ahead).
  class Ahead {
   public:
    [[gnu::always_inline]] Ahead(const Product& /*p*/, uint32_t /*steps*/, size_t bytes,
                                 PanelAhead ahead = kToL2ThenL1)
        : bytes_(bytes * S::kLanes), ahead_(ahead) {}
    [[gnu::always_inline]] void Start(const PanelSource& source) const {
      if (ahead_.to_l2 > 0) {
        Fetch<kInL2>(source.panel(), ahead_.to_l2);
      } else {
        Fetch<kInL1>(source.panel(), ahead_.to_l1);
      }
    }
    [[gnu::always_inline]] void Next(const PanelSource& source, uint32_t step,
                                     bool /*last*/) const {
      const std::byte* const now = source.panel() + step * bytes_;
      if (ahead_.to_l2 > 0) Fetch<kInL2>(now + ahead_.to_l2, bytes_);
      Fetch<kInL1>(now + ahead_.to_l1, bytes_);
    }
    // Where Beside fetched this from memory.
    [[gnu::always_inline]] void NextOfPiece(const PanelSource& source, uint32_t step,
                                            bool /*last*/) const {
      Fetch<kInL1>(source.panel() + step * bytes_ + kToL2ThenL1.to_l1, bytes_);
    }
    // `steps` from `step` on of that many panels, the first of which has `row`; past the last row
    // nothing new. Pieces: PiecesAhead or a PairAhead.
    template <class Pieces = PiecesAhead>
    Pieces Beside(const Product& p, uint32_t row, uint32_t step, uint32_t steps, int panels,
                  uint32_t calls) const {
      const bool any = row < p.rows;
      return {p.weights + (any ? row * p.stride_bytes + step * bytes_ : 0),
              any ? steps * bytes_ : 0, p.stride_bytes * S::kLanes, panels, calls};
    }

   private:
    template <int kLocality>
    [[gnu::always_inline]] static void Fetch(const std::byte* p, size_t bytes) {
#pragma GCC unroll 16
      for (size_t at = 0; at < bytes; at += kLine) __builtin_prefetch(p + at, 0, kLocality);
    }

    size_t bytes_;
    PanelAhead ahead_;
  };

 private:
  template <class BlockT>
  static constexpr size_t OddAt() {
    if constexpr (sizeof(BlockT) % host::kWordBytes == 0) {
      return 0;
    } else if constexpr (requires { &BlockT::e; }) {
      return offsetof(BlockT, e);
    } else {
      return offsetof(BlockT, d);
    }
  }

  const std::byte* panel_;
  uint32_t cols_;
};

}  // namespace tandem::kernels::cpu

#endif  // TANDEM_KERNELS_CPU_MATMUL_WEIGHT_SOURCE_H_
