// The loops of every product, in the order in which they are tried (loop_choice.h); where pairs of
// panels are multiplied with few tokens, RunInPlace takes those first:
//   RunOneSet    up to as many tokens as have their sums in registers, a set: a chunk of columns is
//                multiplied as it is unpacked
//   RunOneSets   few tokens in such sets, one after another
//   RunStreaming panels of floats with few tokens, as they are
//   RunInPlace   panels are multiplied with one set of tokens after another as they are, or, with
//                few tokens, as they are unpacked
//   RunFew       up to kFewTokens tokens: a few chunks at a time are unpacked to the L1 cache
//   RunMany      whole rows are unpacked to a buffer that fits the L2 cache
// All add up in the same order.
//
// A chunk format F (quantised_chunk.h, float_chunk.h) defines:
//   kActivations          what an activation row consists of
//   Unit, X               what weights unpack to, and an element of an activation row
//   kCols, kUnits         columns and units of a chunk
//   kXCols                columns per X
//   kBytes                bytes of a row's chunk
//   kFetches              how often Multiply calls fetch
//   kInPlace              when products use InPlace<Source>, a chunk read in panels, but for pairs
//   kTokens, kTokensOfMany, kTokensOfGroup  tokens of a set of few, of many, and with RunOneSet
//   kTokensInPlace, kMostInPlace  if words are unpacked in place: tokens of a set, of all sets
//   Once                  the same format, for chunks that are multiplied as they are unpacked
//   Unpack(source, col, count, Unit*)         `count` columns, kCols but in a float row's last
//   Once::Expand(const Unit*, Float*)         a chunk's values, one column of rows each
//   Multiply(chunk, x, x_step, count, fetch, acc)  acc[group][token] += the products of a chunk of
//                                             each group: Unpacked{units, step}, or InPlace
#ifndef TANDEM_KERNELS_CPU_MATMUL_MULTIPLY_H_
#define TANDEM_KERNELS_CPU_MATMUL_MULTIPLY_H_

#include <array>
#include <type_traits>
#include <utility>

#include "kernels/cpu/matmul/loop_choice.h"
#include "kernels/cpu/matmul/product.h"
#include "kernels/cpu/matmul/read_ahead.h"
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
        typename F::Once::Unit units[F::kUnits];
        Float values[F::kCols];
        F::Once::Unpack(source, col, count, units);
        F::Once::Expand(units, values);
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
  using Unpacked = UnpackedChunks<F>;
  template <class Source>
  using Choice = LoopChoice<S, F, Source>;
  // Of one group; all of them take at most two thirds of the L1 cache.
  static constexpr uint32_t kChunksInL1 =
      sizeof(Unit) * F::kUnits < 2560 ? S::kPieceBytes / (sizeof(Unit) * F::kUnits) : 1;
  static constexpr uint32_t kMostGroups = 64 / S::kLanes;
  template <class Chunks>
  static constexpr int kMostTokensOfSet =
      F::kInPlace == InPlaceUse::kUnpacking && !std::is_same_v<Chunks, Unpacked> ? F::kTokensInPlace
                                                                                 : F::kTokens;
  template <class Chunks>
  static constexpr uint32_t TokensOfSet(uint32_t tokens) {
    return tokens <= kFewTokens ? kMostTokensOfSet<Chunks> : F::kTokensOfMany;
  }
  template <class Chunks, int kGroups, class Ahead>
  using Sets = TokenSets<S, F, Chunks, kGroups, kMostTokensOfSet<Chunks>, Ahead>;

  template <class Source>
  static void RunFrom(const Product& p, const ProductRange& range, std::byte* scratch) {
    const uint32_t tokens = range.token_end - range.token_begin;
    if constexpr (Choice<Source>::kHasPairs) {
      if (tokens <= kMostBoundByMemory) return RunInPlace<Source, S::kGroups>(p, range);
    }
    if constexpr (Choice<Source>::kHasOneSet) {
      if (tokens <= F::kTokensOfGroup) return kOneSet<Source>[tokens](p, range);
    }
    if constexpr (Choice<Source>::kHasInPlace) {
      if (tokens <= F::kMostInPlace) return RunInPlace<Source, 1>(p, range);
    }
    if constexpr (Choice<Source>::kHasOneSets) {
      if (tokens <= kMostOneSets) return RunOneSets<Source>(p, range);
    }
    if constexpr (Choice<Source>::kStreams) {
      if (tokens <= kMostBoundByMemory) return RunStreaming<Source, S::kGroups>(p, range);
    }
    if constexpr (Choice<Source>::kAlwaysInPlace) {
      RunInPlace<Source, S::kGroups>(p, range);
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
    if (fit < S::kGroups) return S::kGroups;
    return fit > kMostGroups ? kMostGroups : static_cast<uint32_t>(fit);
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
    sum = S::Mul(sum, S::BroadcastFloat(&p.scale));
    if (row + S::kLanes <= p.rows) {
      return S::Store(y, p.bias == nullptr ? sum : S::Add(sum, S::LoadFloat(p.bias + row)));
    }
    float lanes[S::kLanes];
    S::Store(lanes, sum);
    for (uint32_t i = 0; row + i < p.rows; ++i) {
      y[i] = p.bias == nullptr ? lanes[i] : lanes[i] + p.bias[row + i];
    }
  }

  // All sets of a group of rows, which the first brings to the caches, before the next group.
  template <class Source>
  static void RunOneSets(const Product& p, const ProductRange& range) {
    for (uint32_t row = range.row_begin; row < range.row_end; row += S::kLanes) {
      const uint32_t row_end = row + S::kLanes < range.row_end ? row + S::kLanes : range.row_end;
      ForEachSet(range.token_begin, range.token_end, F::kTokensOfGroup,
                 [&](uint32_t token, uint32_t count) {
                   kOneSet<Source>[count](p, {row, row_end, token, token + count});
                 });
    }
  }

  // All tokens' sums stay in registers, and each chunk is multiplied as it is unpacked.
  template <class Source, int kTokens>
  static void RunOneSet(const Product& p, const ProductRange& range) {
    using Once = typename F::Once;
    const X* x = Activations(p, range.token_begin);
    const typename Source::Ahead ahead(p, p.cols / F::kCols, F::kBytes,
                                       kTokens <= kMostBoundByMemory ? p.ahead : kToL2ThenL1);
    for (uint32_t row = range.row_begin; row < range.row_end; row += S::kLanes) {
      const Source source(p, row);
      if (row == range.row_begin) ahead.Start(source);
      const bool last = row + S::kLanes >= range.row_end;
      Float acc[1][kTokens];
#pragma GCC unroll 8
      for (int t = 0; t < kTokens; ++t) acc[0][t] = S::Zero();
      for (uint32_t col = 0; col < p.cols; col += F::kCols) {
        ahead.Next(source, col / F::kCols, last);
        const uint32_t count = ChunkCols(p, col);
        typename Once::Unit units[F::kUnits];
        Once::Unpack(source, col, count, units);
        Once::Multiply(
            typename Once::Unpacked{units, 0}, x + col / F::kXCols, p.x_stride, count, [] {}, acc);
      }
#pragma GCC unroll 8
      for (int t = 0; t < kTokens; ++t) Store(p, row, range.token_begin + t, acc[0][t]);
    }
  }

  // Whole rows of kGroups groups are multiplied with one set of tokens after another, while the
  // next ones are fetched.
  template <class Source, int kGroups>
  static void RunInPlace(const Product& p, const ProductRange& range) {
    const uint32_t tokens = range.token_end - range.token_begin;
    const uint32_t chunks = NumChunks(p.cols);
    const uint32_t most = TokensOfSet<ChunksInPlace<F, Source>>(tokens);
    const uint32_t calls = NumSets(tokens, most) * chunks * F::kFetches;
    if constexpr (kGroups == kPairPanels) {
      const size_t panel = size_t{chunks} * F::kBytes * S::kLanes;
      if (tokens <= kFewTokens && panel <= size_t{calls} * kMostOfPair) {
        return p.ahead.to_l2 > 0
                   ? RunInPlaceWith<Source, kGroups, PairAhead<kInL2>>(p, range, calls)
                   : RunInPlaceWith<Source, kGroups, PairAhead<kInL1>>(p, range, calls);
      }
    }
    RunInPlaceWith<Source, kGroups, PiecesAhead>(p, range, calls);
  }

  template <class Source, int kGroups, class Pieces>
  static void RunInPlaceWith(const Product& p, const ProductRange& range, uint32_t calls) {
    const bool waits = range.token_end - range.token_begin <= kMostBoundByMemory;
    const uint32_t chunks = NumChunks(p.cols);
    const typename Source::Ahead ahead(p, chunks, F::kBytes, waits ? p.ahead : kToL2ThenL1);
    constexpr uint32_t kRows = kGroups * S::kLanes;
    for (uint32_t row = range.row_begin; row < range.row_end; row += kRows) {
      const uint32_t groups = row + S::kLanes < range.row_end ? kGroups : 1;
      if (row == range.row_begin) ahead.Start(Source(p, row));
      Pieces beside = ahead.template Beside<Pieces>(p, row + kRows, 0, chunks, kGroups, calls);
      if constexpr (std::is_same_v<Pieces, PiecesAhead>) {
        if (waits) {
          beside.FetchNear(p.weights + row * p.stride_bytes, F::kBytes * S::kLanes / F::kFetches,
                           p.ahead.to_l1);
        }
      }
      MultiplySets<kGroups>(p, range, PanelsFrom<Source>(p, row), row, groups, &beside);
    }
  }

  // The chunks of the group of rows `row`, and of those behind it.
  template <class Source>
  static auto PanelsFrom(const Product& p, uint32_t row) {
    return [&p, row](uint32_t group) {
      return ChunksInPlace<F, Source>{Source(p, row + group * S::kLanes),
                                      p.stride_bytes * S::kLanes, 0};
    };
  }

  // As RunInPlace, while the processor alone reads ahead.
  template <class Source, int kGroups>
  static void RunStreaming(const Product& p, const ProductRange& range) {
    constexpr uint32_t kRows = kGroups * S::kLanes;
    NothingAhead none;
    for (uint32_t row = range.row_begin; row < range.row_end; row += kRows) {
      const uint32_t groups = row + S::kLanes < range.row_end ? kGroups : 1;
      MultiplySets<kGroups>(p, range, PanelsFrom<Source>(p, row), row, groups, &none);
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
    using Set = Sets<Unpacked, kGroups, decltype(Beside<kGroups>(p, row, 0, ahead, 1))>;
    const uint32_t tokens = range.token_end - range.token_begin;
    const X* x = Activations(p, range.token_begin);
    Float acc[kFewTokens * kGroups];
    for (uint32_t i = 0; i < tokens * kGroups; ++i) acc[i] = S::Zero();
    Unit units[kGroups * kChunksInL1 * F::kUnits];
    for (uint32_t col = 0, cols = 0; col < p.cols; col += cols) {
      cols = ColsInL1(p, col);
      const Unpacked chunks = InL1<Source, kGroups>(p, range, row, col, cols, ahead, units);
      const uint32_t calls = NumSets(tokens, Set::kMostTokens) * NumChunks(cols) * F::kFetches;
      auto beside = Beside<kGroups>(p, row, col + cols, ahead, calls);
      ForEachSet(0, tokens, Set::kMostTokens, [&](uint32_t t, uint32_t count) {
        Set::Add(count, chunks, x + t * p.x_stride + col / F::kXCols, p.x_stride, cols,
                 acc + t * kGroups, &beside);
      });
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
  static Unpacked InL1(const Product& p, const ProductRange& range, uint32_t row, uint32_t col,
                       uint32_t cols, const typename Source::Ahead& ahead, Unit* units) {
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
    for (uint32_t c = col; c < col + cols; c += F::kCols, out += F::kUnits) {
      ahead.NextOfPiece(source, c / F::kCols, /*last=*/row + S::kLanes >= range.row_end);
      F::Unpack(source, c, ChunkCols(p, c), out);
    }
  }

  // Reads the pieces that come after those which end at `col`, in these groups or the next ones.
  template <int kGroups, class Ahead>
  static auto Beside(const Product& p, uint32_t row, uint32_t col, const Ahead& ahead,
                     uint32_t calls) {
    if (col == p.cols) {
      row += kGroups * S::kLanes;
      col = 0;
    }
    return ahead.Beside(p, row, col / F::kCols, NumChunks(ColsInL1(p, col)), kGroups, calls);
  }

  // y[token + t, row + g * lanes ..] = scale * acc[t * kGroups + g] (+ bias).
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
      NothingAhead none;
      const size_t step = Units(p.cols);
      const auto chunks_of = [&](uint32_t group) { return Unpacked{packed + group * step, step}; };
      MultiplySets<S::kGroups>(p, range, chunks_of, first, groups, &none);
    }
  }

  // `groups` groups from row `first` on, whose chunks chunks_of(group) returns, and one set of
  // tokens after another.
  template <int kGroups, class ChunksOf, class Ahead>
  static void MultiplySets(const Product& p, const ProductRange& range, const ChunksOf& chunks_of,
                           uint32_t first, uint32_t groups, Ahead* beside) {
    const uint32_t most = TokensOfSet<decltype(chunks_of(0))>(range.token_end - range.token_begin);
    ForEachSet(range.token_begin, range.token_end, most, [&](uint32_t token, uint32_t tokens) {
      uint32_t g = 0;
      for (; g + kGroups <= groups; g += kGroups) {
        MultiplyRows<kGroups>(p, chunks_of(g), first + g * S::kLanes, token, tokens, beside);
      }
      for (; g < groups; ++g) {
        MultiplyRows<1>(p, chunks_of(g), first + g * S::kLanes, token, tokens, beside);
      }
    });
  }

  // A set of tokens and kGroups groups from `row` on.
  template <int kGroups, class Chunks, class Ahead>
  static void MultiplyRows(const Product& p, const Chunks& chunks, uint32_t row, uint32_t token,
                           uint32_t tokens, Ahead* beside) {
    using Set = Sets<Chunks, kGroups, Ahead>;
    const X* const x = Activations(p, token);
    constexpr uint32_t kRows = kGroups * S::kLanes;
    if (row + kRows <= p.rows) {
      float* const y = p.y + token * p.y_stride + row;
      Set::Multiply(tokens, chunks, x, p.x_stride, p.cols, y, p.y_stride, beside);
      if (p.scale != 1.0f || p.bias != nullptr) Finish<kGroups>(p, row, tokens, y);
      return;
    }
    Float sums[Set::kMostTokens * kGroups];
    Set::Multiply(tokens, chunks, x, p.x_stride, p.cols, reinterpret_cast<float*>(sums), kRows,
                  beside);
    StoreSums<kGroups>(p, row, token, tokens, sums);
  }

  // What Store does, of sums that are in y.
  template <int kGroups>
  static void Finish(const Product& p, uint32_t row, uint32_t tokens, float* y) {
    const Float scale = S::BroadcastFloat(&p.scale);
    for (uint32_t t = 0; t < tokens; ++t, y += p.y_stride) {
      for (int i = 0; i < kGroups * S::kLanes; i += S::kLanes) {
        const Float product = S::Mul(S::LoadFloat(y + i), scale);
        S::Store(y + i,
                 p.bias == nullptr ? product : S::Add(product, S::LoadFloat(p.bias + row + i)));
      }
    }
  }

  // Indexed by tokens.
  template <class Source, int... kBefore>
  static constexpr std::array<OneSetFn, sizeof...(kBefore) + 1> OneSets(
      std::integer_sequence<int, kBefore...>) {
    return {nullptr, &RunOneSet<Source, kBefore + 1>...};
  }
  template <class Source>
  static constexpr auto kOneSet =
      OneSets<Source>(std::make_integer_sequence<int, F::kTokensOfGroup>());
};

}  // namespace tandem::kernels::cpu

#endif  // TANDEM_KERNELS_CPU_MATMUL_MULTIPLY_H_
