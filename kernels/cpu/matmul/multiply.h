// The loops of every product. If the sums of all tokens fit in registers, each chunk of columns is
// multiplied as it is unpacked. For more tokens, panels of formats that products can read as they
// are (kInPlace) are multiplied in place; of others a few chunks at a time are unpacked to the L1
// cache, or, beyond kFewTokens tokens, whole rows to a buffer that fits the L2 cache. All add up in
// the same order.
//
// A chunk format F (quantised_chunk.h, float_chunk.h) defines:
//   kActivations          what an activation row consists of
//   Unit, X               what weights unpack to, and an element of an activation row
//   kCols, kUnits         columns and units of a chunk
//   kXCols                columns per X
//   kBytes                bytes of a row's chunk
//   kInPlace              whether there is InPlace<Source>: a chunk that products read in panels
//   Unpack(source, col, count, Unit*)         `count` columns, kCols but in a float row's last
//   Expand(const Unit*, Float*)               a chunk's values, one column of rows each
//   Multiply(chunk, x, x_step, count, acc)    acc[group][token] += the products of a chunk of each
//                                             group: Unpacked{units, step}, or InPlace
//   kManyTiles            whether there is UnpackAndMultiply(source, col, x, x_step, fetch, acc):
//                         Unpack and Multiply of one group tile by tile, without units in memory
#ifndef TANDEM_KERNELS_CPU_MATMUL_MULTIPLY_H_
#define TANDEM_KERNELS_CPU_MATMUL_MULTIPLY_H_

#include <type_traits>

#include "kernels/cpu/matmul/product.h"
#include "kernels/cpu/matmul/token_sets.h"
#include "kernels/cpu/matmul/weight_source.h"

namespace tandem::kernels::cpu {

template <class S, class F>
class Multiply {
 public:
  static void Run(const Product& p, const ProductRange& range, std::byte* scratch) {
    if (p.in_panels) {
      RunFrom<PanelSource<S>>(p, range, scratch);
    } else {
      RunFrom<RowSource<S>>(p, range, scratch);
    }
  }

  static void Transpose(const TransposeSource& w, float* out, uint32_t out_stride) {
    for (uint32_t row = 0; row < w.rows; row += S::kLanes) {
      const RowSource<S> source(w.weights, w.stride_bytes, row, w.rows);
      for (uint32_t col = 0; col < w.cols; col += F::kCols) {
        const uint32_t count = w.cols - col < F::kCols ? w.cols - col : F::kCols;
        Unit units[F::kUnits];
        Float values[F::kCols];
        F::Unpack(source, col, count, units);
        F::Expand(units, values);
        for (uint32_t c = 0; c < count; ++c) {
          S::Store(out + size_t{col + c} * out_stride + row, values[c]);
        }
      }
    }
  }

  static size_t ScratchBytes(uint32_t cols) {
    return sizeof(Unit) * Units(cols) * GroupsAtOnce(cols);
  }

 private:
  using Unit = typename F::Unit;
  using X = typename F::X;
  using Float = typename S::Float;
  using OneSetFn = void (*)(const Product&, const ProductRange&);
  // Of one group: a small part of the L1 cache.
  static constexpr uint32_t kChunksInL1 =
      sizeof(Unit) * F::kUnits < 2560 ? 5120 / (sizeof(Unit) * F::kUnits) : 1;
  // A chunk of many tiles for few tokens: storing its units would cost more than their products.
  template <class Source, int kTokens>
  static constexpr bool kTileByTile = F::kManyTiles ? Source::kPanels&& kTokens <= 4 : false;
  static constexpr uint32_t kMostGroups = 64 / S::kLanes;
  static constexpr bool kPanelsInPlace = F::kInPlace ? S::kInPlace : false;
  template <class Source>
  static constexpr bool kInPlace = Source::kPanels ? kPanelsInPlace : false;
  template <class Source>
  using Chunks = std::conditional_t<kInPlace<Source>, ChunksInPlace<F, Source>, UnpackedChunks<F>>;
  template <class Source, int kGroups>
  using Sets = TokenSets<S, F, Chunks<Source>, kGroups>;

  template <class Source>
  static void RunFrom(const Product& p, const ProductRange& range, std::byte* scratch) {
    const uint32_t tokens = range.token_end - range.token_begin;
    if (tokens <= S::kTokensOfGroup) return kOneSet<Source>[tokens](p, range);
    if constexpr (kInPlace<Source>) {
      RunInPlace<Source>(p, range);
    } else if (tokens <= kFewTokens) {
      RunFew<Source>(p, range);
    } else {
      RunMany<Source>(p, range, reinterpret_cast<Unit*>(scratch));
    }
  }

  static size_t Units(uint32_t cols) { return size_t{NumChunks(cols)} * F::kUnits; }

  // Groups of kLanes rows that are unpacked together.
  static uint32_t GroupsAtOnce(uint32_t cols) {
    const size_t fit = kPackedBytes / (sizeof(Unit) * Units(cols)) / S::kGroups * S::kGroups;
    return fit < S::kGroups    ? S::kGroups
           : fit > kMostGroups ? kMostGroups
                               : static_cast<uint32_t>(fit);
  }

  static const X* Activations(const Product& p, uint32_t token) {
    return static_cast<const X*>(p.x) + token * p.x_stride;
  }

  static uint32_t ChunkCols(const Product& p, uint32_t col) {
    return p.cols - col < F::kCols ? p.cols - col : F::kCols;
  }

  [[gnu::always_inline]] static inline void Store(const Product& p, uint32_t row, uint32_t token,
                                                  Float sum) {
    float* y = p.y + token * p.y_stride + row;
    if (row + S::kLanes <= p.rows) {
      S::Store(y, p.bias == nullptr ? sum : S::Add(sum, S::LoadFloat(p.bias + row)));
      return;
    }
    float lanes[S::kLanes];
    S::Store(lanes, sum);
    for (uint32_t i = 0; row + i < p.rows; ++i) {
      y[i] = p.bias == nullptr ? lanes[i] : lanes[i] + p.bias[row + i];
    }
  }

  // All tokens' sums stay in registers, and each chunk is multiplied as it is unpacked.
  template <class Source, int kTokens>
  static void RunOneSet(const Product& p, const ProductRange& range) {
    const X* x = Activations(p, range.token_begin);
    const typename Source::Ahead ahead(p, p.cols / F::kCols, F::kBytes);
    for (uint32_t row = range.row_begin; row < range.row_end; row += S::kLanes) {
      const Source source(p, row);
      if (row == range.row_begin) ahead.Start(source);
      [[maybe_unused]] const bool last = row + S::kLanes >= range.row_end;
      Float acc[1][kTokens];
#pragma GCC unroll 8
      for (int t = 0; t < kTokens; ++t) acc[0][t] = S::Zero();
      for (uint32_t col = 0; col < p.cols; col += F::kCols) {
        const X* const x_of_chunk = x + col / F::kXCols;
        if constexpr (kTileByTile<Source, kTokens>) {
          const auto fetch = [&](uint32_t tile) __attribute__((always_inline)) {
            ahead.NextPart(source, col / F::kCols, tile, F::kUnits);
          };
          F::UnpackAndMultiply(source, col, x_of_chunk, p.x_stride, fetch, acc);
        } else {
          ahead.Next(source, col / F::kCols, last);
          const uint32_t count = ChunkCols(p, col);
          Unit units[F::kUnits];
          F::Unpack(source, col, count, units);
          F::Multiply(typename F::Unpacked{units, 0}, x_of_chunk, p.x_stride, count, acc);
        }
      }
#pragma GCC unroll 8
      for (int t = 0; t < kTokens; ++t) Store(p, row, range.token_begin + t, acc[0][t]);
    }
  }

  // Whole rows of S::kGroups groups are multiplied with one set of tokens after another, while the
  // next ones are fetched.
  template <class Source>
  static void RunInPlace(const Product& p, const ProductRange& range) {
    const typename Source::Ahead ahead(p, p.cols / F::kCols, F::kBytes);
    const uint32_t tokens = range.token_end - range.token_begin;
    const uint32_t chunks = NumChunks(p.cols);
    const uint32_t calls = (tokens + S::kTokens - 1) / S::kTokens * chunks;
    constexpr uint32_t kRows = S::kGroups * S::kLanes;
    for (uint32_t row = range.row_begin; row < range.row_end; row += kRows) {
      const uint32_t groups = row + S::kLanes < range.row_end ? S::kGroups : 1;
      PiecesAhead beside = ahead.Beside(p, row + kRows, 0, chunks, S::kGroups, calls);
      MultiplySets<Source>(p, range, nullptr, row, groups, &beside);
    }
  }

  // Chunks of S::kGroups groups, in the L1 cache, are multiplied with one set of tokens after
  // another.
  template <class Source>
  static void RunFew(const Product& p, const ProductRange& range) {
    const typename Source::Ahead ahead(p, p.cols / F::kCols, F::kBytes);
    for (uint32_t row = range.row_begin; row < range.row_end; row += S::kGroups * S::kLanes) {
      if (row + S::kLanes < range.row_end) {
        RunFewGroups<Source, S::kGroups>(p, range, row, ahead);
      } else {
        RunFewGroups<Source, 1>(p, range, row, ahead);
      }
    }
  }

  template <class Source, int kGroups>
  static void RunFewGroups(const Product& p, const ProductRange& range, uint32_t row,
                           const typename Source::Ahead& ahead) {
    using Set = Sets<Source, kGroups>;
    const uint32_t tokens = range.token_end - range.token_begin;
    const uint32_t set = Set::SetTokens(tokens);
    const X* x = Activations(p, range.token_begin);
    Float acc[kFewTokens * kGroups];
    for (uint32_t i = 0; i < tokens * kGroups; ++i) acc[i] = S::Zero();
    Unit units[kGroups * kChunksInL1 * F::kUnits];
    for (uint32_t col = 0, cols = 0; col < p.cols; col += cols) {
      cols = ColsInL1(p, col);
      const Chunks<Source> chunks = InL1<Source, kGroups>(p, range, row, col, cols, ahead, units);
      const uint32_t calls = (tokens + set - 1) / set * NumChunks(cols);
      PiecesAhead beside = Beside<kGroups>(p, row, col + cols, ahead, calls);
      for (uint32_t t = 0; t < tokens; t += set) {
        Set::Add(tokens - t < set ? tokens - t : set, chunks, x + t * p.x_stride + col / F::kXCols,
                 p.x_stride, cols, acc + t * kGroups, &beside);
      }
    }
    StoreSums<kGroups>(p, row, range.token_begin, tokens, acc);
  }

  static uint32_t NumChunks(uint32_t cols) { return (cols + F::kCols - 1) / F::kCols; }

  // Columns from `col` on that are in the L1 cache at once.
  static uint32_t ColsInL1(const Product& p, uint32_t col) {
    return p.cols - col < kChunksInL1 * F::kCols ? p.cols - col : kChunksInL1 * F::kCols;
  }

  // The chunks of `cols` columns of kGroups groups.
  template <class Source, int kGroups>
  static Chunks<Source> InL1(const Product& p, const ProductRange& range, uint32_t row,
                             uint32_t col, uint32_t cols, const typename Source::Ahead& ahead,
                             Unit* units) {
    for (int g = 0; g < kGroups && col == 0 && row == range.row_begin; ++g) {
      ahead.Start(Source(p, row + g * S::kLanes));
    }
    constexpr size_t kStep = kChunksInL1 * F::kUnits;
    for (int g = 0; g < kGroups; ++g) {
      UnpackPiece<Source>(p, range, row + g * S::kLanes, col, cols, ahead, units + g * kStep);
    }
    return {units, kStep};
  }

  template <class Source>
  static void UnpackPiece(const Product& p, const ProductRange& range, uint32_t row, uint32_t col,
                          uint32_t cols, const typename Source::Ahead& ahead, Unit* out) {
    const Source source(p, row);
    const bool last = row + S::kLanes >= range.row_end;
    for (uint32_t c = col; c < col + cols; c += F::kCols, out += F::kUnits) {
      ahead.NextOfPiece(source, c / F::kCols, last);
      F::Unpack(source, c, ChunkCols(p, c), out);
    }
  }

  // Reads the pieces that come after those which end at `col`, in these groups or the next ones.
  template <int kGroups, class Ahead>
  static PiecesAhead Beside(const Product& p, uint32_t row, uint32_t col, const Ahead& ahead,
                            uint32_t calls) {
    if (col == p.cols) {
      row += kGroups * S::kLanes;
      col = 0;
    }
    return ahead.Beside(p, row, col / F::kCols, NumChunks(ColsInL1(p, col)), kGroups, calls);
  }

  // y[token + t, row + g * lanes ..] = acc[t * kGroups + g] (+ bias).
  template <int kGroups>
  static void StoreSums(const Product& p, uint32_t row, uint32_t token, uint32_t tokens,
                        const Float* acc) {
    for (uint32_t t = 0; t < tokens; ++t) {
      for (int g = 0; g < kGroups; ++g) {
        Store(p, row + g * S::kLanes, token + t, acc[t * kGroups + g]);
      }
    }
  }

  template <class Source>
  static void Pack(const Product& p, uint32_t row, Unit* out) {
    const Source source(p, row);
    const typename Source::Ahead ahead(p, p.cols / F::kCols, F::kBytes);
    ahead.Start(source);
    for (uint32_t col = 0; col < p.cols; col += F::kCols, out += F::kUnits) {
      ahead.Next(source, col / F::kCols, /*last=*/true);
      F::Unpack(source, col, ChunkCols(p, col), out);
    }
  }

  // Whole rows of up to as many groups as fit the L2 cache are unpacked and multiplied with one set
  // of tokens after another.
  template <class Source>
  static void RunMany(const Product& p, const ProductRange& range, Unit* packed) {
    const uint32_t at_once = GroupsAtOnce(p.cols);
    for (uint32_t first = range.row_begin; first < range.row_end; first += at_once * S::kLanes) {
      uint32_t groups = 0;
      for (; groups < at_once && first + groups * S::kLanes < range.row_end; ++groups) {
        Pack<Source>(p, first + groups * S::kLanes, packed + groups * Units(p.cols));
      }
      PiecesAhead none;
      MultiplySets<Source>(p, range, packed, first, groups, &none);
    }
  }

  // `groups` groups from row `first` on and one set of tokens after another.
  template <class Source>
  static void MultiplySets(const Product& p, const ProductRange& range, const Unit* packed,
                           uint32_t first, uint32_t groups, PiecesAhead* beside) {
    const uint32_t set = Sets<Source, S::kGroups>::SetTokens(range.token_end - range.token_begin);
    for (uint32_t token = range.token_begin; token < range.token_end; token += set) {
      const uint32_t tokens = range.token_end - token < set ? range.token_end - token : set;
      uint32_t g = 0;
      for (; g + S::kGroups <= groups; g += S::kGroups) {
        MultiplyRows<Source, S::kGroups>(p, packed, first, g, token, tokens, beside);
      }
      for (; g < groups; ++g) MultiplyRows<Source, 1>(p, packed, first, g, token, tokens, beside);
    }
  }

  // A set of tokens and kGroups groups from group `g` after row `first` on.
  template <class Source, int kGroups>
  static void MultiplyRows(const Product& p, const Unit* packed, uint32_t first, uint32_t g,
                           uint32_t token, uint32_t tokens, PiecesAhead* beside) {
    const uint32_t row = first + g * S::kLanes;
    const Chunks<Source> chunks = WholeRows<Source>(p, packed + g * Units(p.cols), row);
    const X* const x = Activations(p, token);
    if (row + kGroups * S::kLanes <= p.rows) {
      float* const y = p.y + token * p.y_stride + row;
      Sets<Source, kGroups>::Multiply(tokens, chunks, x, p.x_stride, p.cols, y, p.y_stride, beside);
      if (p.bias != nullptr) AddBias<kGroups>(p.bias + row, tokens, y, p.y_stride);
      return;
    }
    Float acc[S::kTokensOfGroup * kGroups];
    for (uint32_t i = 0; i < tokens * kGroups; ++i) acc[i] = S::Zero();
    Sets<Source, kGroups>::Add(tokens, chunks, x, p.x_stride, p.cols, acc, beside);
    StoreSums<kGroups>(p, row, token, tokens, acc);
  }

  template <int kGroups>
  static void AddBias(const float* bias, uint32_t tokens, float* y, size_t y_stride) {
    for (uint32_t t = 0; t < tokens; ++t, y += y_stride) {
      for (int i = 0; i < kGroups * S::kLanes; i += S::kLanes) {
        S::Store(y + i, S::Add(S::LoadFloat(y + i), S::LoadFloat(bias + i)));
      }
    }
  }

  template <class Source>
  static Chunks<Source> WholeRows(const Product& p, const Unit* packed, uint32_t row) {
    if constexpr (kInPlace<Source>) {
      return {Source(p, row), p.stride_bytes * S::kLanes, 0};
    } else {
      return {packed, Units(p.cols)};
    }
  }

  // Indexed by tokens.
  template <class Source, int kTokens>
  static constexpr OneSetFn OneSet() {
    if constexpr (kTokens <= S::kTokensOfGroup) return &RunOneSet<Source, kTokens>;
    return nullptr;
  }
  template <class Source>
  static constexpr OneSetFn kOneSet[9] = {nullptr,
                                          OneSet<Source, 1>(),
                                          OneSet<Source, 2>(),
                                          OneSet<Source, 3>(),
                                          OneSet<Source, 4>(),
                                          OneSet<Source, 5>(),
                                          OneSet<Source, 6>(),
                                          OneSet<Source, 7>(),
                                          OneSet<Source, 8>()};
};

}  // namespace tandem::kernels::cpu

#endif  // TANDEM_KERNELS_CPU_MATMUL_MULTIPLY_H_
