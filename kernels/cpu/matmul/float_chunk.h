// Chunks of plain weights (F32, F16, BF16): multiplied with float activations (F32Columns), or BF16
// weights with activations rounded to BF16 (BF16Pairs).
//
// The order of summation, the same for every instruction set and batch size: each 32 columns are
// one chain of fused multiply-adds from zero, and these sums are added up in ascending order.
#ifndef TANDEM_KERNELS_CPU_MATMUL_FLOAT_CHUNK_H_
#define TANDEM_KERNELS_CPU_MATMUL_FLOAT_CHUNK_H_

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <utility>

#include "kernels/cpu/matmul/weight_source.h"

namespace tandem::kernels::cpu {

// Columns of weights as floats, and how they are multiplied.
template <class S>
struct F32Columns {
  static constexpr Activations kActivations = Activations::kFloats;
  using Unit = typename S::Float;  // of kLanes rows
  using X = float;
  static constexpr uint32_t kColsOfUnit = 1;

  [[gnu::always_inline]] static inline Unit Broadcast(const X* x) { return S::BroadcastFloat(x); }
  [[gnu::always_inline]] static inline Unit MulAdd(Unit w, Unit x, Unit sum) {
    return S::MulAdd(w, x, sum);
  }
  [[gnu::always_inline]] static inline void Expand(Unit w, typename S::Float* out) { *out = w; }
};

// The formats: eight columns of each row from `values`. FromWord, in formats whose words are units,
// makes a unit of one.
template <class S>
struct UnpackF32 : F32Columns<S> {
  using Value = float;
  template <class B>
  [[gnu::always_inline]] static inline void Run(const B& values, typename S::Float* out) {
    typename S::Int words[8];
    values.Load32(0, words);
#pragma GCC unroll 8
    for (int j = 0; j < 8; ++j) out[j] = FromWord(words[j]);
  }
  [[gnu::always_inline]] static inline typename S::Float FromWord(typename S::Int word) {
    return S::AsFloat(word);
  }
};

template <class S>
struct UnpackF16 : F32Columns<S> {
  using Value = uint16_t;
  template <class B>
  [[gnu::always_inline]] static inline void Run(const B& values, typename S::Float* out) {
    typename S::Int words[4];
    values.Load16(0, words);
#pragma GCC unroll 4
    for (int j = 0; j < 4; ++j) S::HalvesToFloats(words[j], out + 2 * j, out + 2 * j + 1);
  }
};

// A word of two BF16 as floats.
template <class S>
[[gnu::always_inline]] inline void ExpandBF16(typename S::Int pair, typename S::Float* out) {
  out[0] = S::AsFloat(S::template ShiftLeft<16>(pair));
  out[1] = S::AsFloat(S::template ShiftLeft<16>(S::template ShiftRight<16>(pair)));
}

template <class S>
struct UnpackBF16 : F32Columns<S> {
  using Value = uint16_t;
  template <class B>
  [[gnu::always_inline]] static inline void Run(const B& values, typename S::Float* out) {
    typename S::Int words[4];
    values.Load16(0, words);
#pragma GCC unroll 4
    for (int j = 0; j < 4; ++j) ExpandBF16<S>(words[j], out + 2 * j);
  }
};

// Weights as stored. Columns are multiplied by twos, the second of each two first.
template <class S>
struct BF16Pairs {
  static constexpr Activations kActivations = Activations::kBf16Pairs;
  using Value = uint16_t;
  using Unit = typename S::Int;
  using X = uint32_t;
  static constexpr uint32_t kColsOfUnit = 2;

  template <class B>
  [[gnu::always_inline]] static inline void Run(const B& values, Unit* out) {
    values.Load16(0, out);
  }
  [[gnu::always_inline]] static inline Unit FromWord(Unit word) { return word; }
  [[gnu::always_inline]] static inline Unit Broadcast(const X* x) { return S::Broadcast(x); }
  [[gnu::always_inline]] static inline typename S::Float MulAdd(Unit w, Unit x,
                                                                typename S::Float sum) {
    return S::DotPairs(w, x, sum);
  }
  [[gnu::always_inline]] static inline void Expand(Unit w, typename S::Float* out) {
    ExpandBF16<S>(w, out);
  }
};

// S: the instruction set (simd_*.h). U: one of the above.
template <class S, class U>
struct FloatChunk {
  using Once = FloatChunk;
  static constexpr int kTokens = S::kTokensOfFloats;
  static constexpr int kTokensOfMany = kTokens;
  static constexpr int kTokensInPlace = kTokens;
  static constexpr int kTokensOfGroup = S::kTokensOfGroup;
  static constexpr Activations kActivations = U::kActivations;
  using Unit = typename U::Unit;
  using X = typename U::X;
  using Value = typename U::Value;
  using Float = typename S::Float;
  static constexpr uint32_t kCols = 32;
  static constexpr uint32_t kXCols = U::kColsOfUnit;
  static constexpr uint32_t kUnits = kCols / U::kColsOfUnit;
  static constexpr size_t kBytes = kCols * sizeof(Value);
  static constexpr uint32_t kFetches = 1;
  static constexpr InPlaceUse kInPlace = [] {
    if constexpr (requires { &U::FromWord; }) return InPlaceUse::kAlways;
    return InPlaceUse::kNever;
  }();

  template <class Source>
  [[gnu::always_inline]] static inline void Unpack(const Source& source, uint32_t col,
                                                   uint32_t count, Unit* out) {
    uint32_t c = 0;
    for (; c + kStep <= count; c += kStep) {
      U::Run(source.template Values<Value>(col + c), out + c / kXCols);
    }
    if (c == count) return;
    if constexpr (Source::kPanels) {
      U::Run(source.template Values<Value>(col + c), out + c / kXCols);
    } else {
      UnpackTail(source.rows(), col + c, count - c, out + c / kXCols);
    }
  }

  [[gnu::always_inline]] static inline void Expand(const Unit* units, Float* out) {
    for (uint32_t u = 0; u < kUnits; ++u) U::Expand(units[u], out + u * kXCols);
  }

  struct Unpacked {
    [[gnu::always_inline]] Unit At(int group, uint32_t u) const { return units[group * step + u]; }

    const Unit* units;
    size_t step;
  };

  // A chunk of `source` and of the panels `step` bytes after it.
  template <class Source>
  class InPlace {
   public:
    [[gnu::always_inline]] InPlace(const Source& source, size_t step, size_t chunk)
        : values_(source.template Values<Value>(chunk * kCols)), step_(step) {}

    [[gnu::always_inline]] Unit At(int group, uint32_t u) const {
      return U::FromWord(values_.After(group * step_).LoadWord(4 * u));
    }
    // kStep columns from `col` on.
    [[gnu::always_inline]] void Unpack(int group, uint32_t col, Unit* out) const {
      U::Run(values_.After(group * step_ + col * (sizeof(Value) * S::kLanes)), out);
    }

   private:
    decltype(std::declval<Source>().template Values<Value>(0)) values_;
    size_t step_;
  };

  template <int kGroups, int kTokens, class Weights, class Fetch>
  [[gnu::always_inline]] static inline void Multiply(const Weights& w, const X* x, size_t x_step,
                                                     uint32_t count, const Fetch& fetch,
                                                     Float (&acc)[kGroups][kTokens]) {
    fetch();
    Float sum[kGroups][kTokens];
#pragma GCC unroll 2
    for (int g = 0; g < kGroups; ++g) {
#pragma GCC unroll 12
      for (int t = 0; t < kTokens; ++t) sum[g][t] = S::Zero();
    }
    AddProducts(w, x, x_step, count, sum);
#pragma GCC unroll 2
    for (int g = 0; g < kGroups; ++g) {
#pragma GCC unroll 12
      for (int t = 0; t < kTokens; ++t) acc[g][t] = S::Add(acc[g][t], sum[g][t]);
    }
  }

 private:
  static constexpr uint32_t kStep = host::kPlainColumns;  // columns that U unpacks at once

  // sum[group][token] += the products of `count` columns.
  template <int kGroups, int kTokens, class Weights>
  [[gnu::always_inline]] static inline void AddProducts(const Weights& w, const X* x, size_t x_step,
                                                        uint32_t count,
                                                        Float (&sum)[kGroups][kTokens]) {
    for (uint32_t u = 0; u * kXCols < count; ++u) {
#pragma GCC unroll 12
      for (int t = 0; t < kTokens; ++t) {
        const Unit value = U::Broadcast(x + t * x_step + u);
#pragma GCC unroll 2
        for (int g = 0; g < kGroups; ++g) sum[g][t] = U::MulAdd(w.At(g, u), value, sum[g][t]);
      }
    }
  }
  // kStep columns at a time, not through a copy.
  template <int kGroups, int kTokens, class Source>
  requires(S::kPairsOfFew)
      [[gnu::always_inline]] static inline void AddProducts(const InPlace<Source>& w, const X* x,
                                                            size_t x_step, uint32_t count,
                                                            Float (&sum)[kGroups][kTokens]) {
    for (uint32_t c = 0; c < count; c += kStep, x += kStep / kXCols) {
      Unit units[kGroups][kStep / kXCols];
#pragma GCC unroll 2
      for (int g = 0; g < kGroups; ++g) w.Unpack(g, c, units[g]);
      const auto add = [&](uint32_t u) __attribute__((always_inline)) {
#pragma GCC unroll 12
        for (int t = 0; t < kTokens; ++t) {
          const Unit value = U::Broadcast(x + t * x_step + u);
#pragma GCC unroll 2
          for (int g = 0; g < kGroups; ++g) sum[g][t] = U::MulAdd(units[g][u], value, sum[g][t]);
        }
      };
      if (c + kStep <= count) {
#pragma GCC unroll 8
        for (uint32_t u = 0; u < kStep / kXCols; ++u) add(u);
      } else {
        for (uint32_t u = 0; c + u * kXCols < count; ++u) add(u);
      }
    }
  }

  // Fewer than kStep columns go through a copy: the last row may end at the end of the file.
  static void UnpackTail(const typename S::Rows& rows, uint32_t col, uint32_t count, Unit* out) {
    std::byte copy[S::kLanes][kStep * sizeof(Value)] = {};
    typename S::Rows tail;
    for (int lane = 0; lane < S::kLanes; ++lane) {
      std::memcpy(copy[lane], rows.row[lane] + size_t{col} * sizeof(Value), count * sizeof(Value));
      tail.row[lane] = copy[lane];
      tail.offset[lane] = static_cast<int32_t>(lane * sizeof(copy[0]));
    }
    U::Run(BytesOfRows<S, sizeof(copy[0])>(tail, 0), out);
  }
};

}  // namespace tandem::kernels::cpu

#endif  // TANDEM_KERNELS_CPU_MATMUL_FLOAT_CHUNK_H_
