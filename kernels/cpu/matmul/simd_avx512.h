// AVX-512 (F, BW, VL, DQ; VNNI where kVnni) as used by the templates of this folder: 16 rows of the
// weight side by side, one per 32-bit lane. The operations are those of simd_avx2.h.
//
// Include only from files that are compiled for AVX-512: nothing here may be inlined elsewhere.
#ifndef TANDEM_KERNELS_CPU_MATMUL_SIMD_AVX512_H_
#define TANDEM_KERNELS_CPU_MATMUL_SIMD_AVX512_H_

#if defined(__AVX512F__) && defined(__AVX512BW__) && defined(__AVX512VL__) && defined(__AVX512DQ__)

#include <immintrin.h>

#include <cstdint>
#include <cstring>

#include "kernels/cpu/matmul/look_up.h"
#include "kernels/cpu/matmul/product.h"
#include "kernels/cpu/matmul/rows.h"

#define TANDEM_SIMD [[gnu::always_inline]] static inline

namespace tandem::kernels::cpu {

template <bool kHasVnni>
struct Avx512 {
  static constexpr int kLanes = 16;
  static constexpr int kTokens = 6;
  static constexpr int kTokensOfOneScale = 6;
  static constexpr int kTokensOfMany = 6;
  static constexpr int kTokensOfFloats = 6;
  static constexpr int kTokensOfGroup = 8;
  static constexpr int kTokensOfSignedGroup = kTokensOfGroup;
  static constexpr uint32_t kPieceBytes = 5120;
  static constexpr int kTokensInPlace = kHasVnni ? 12 : 8;
  static constexpr int kGroups = 2;
  // Whether few tokens are multiplied with two panels at once, unpacked as they are read.
  static constexpr bool kPairsOfFew = false;
  static constexpr bool kVnni = kHasVnni;
  static constexpr bool kInPlace = true;
  static constexpr uint32_t kMostInPlace = kFewTokens;
  static constexpr bool kSplitsSigns = false;  // a masked subtraction is as fast
  using Int = __m512i;
  using Float = __m512;
  using Rows = RowPointers<kLanes>;

  // --- bytes and integers ---
  TANDEM_SIMD Int Bytes(int value) { return _mm512_set1_epi8(static_cast<char>(value)); }
  TANDEM_SIMD Int Words(int32_t value) { return _mm512_set1_epi32(value); }
  TANDEM_SIMD Int AddBytes(Int a, Int b) { return _mm512_add_epi8(a, b); }
  TANDEM_SIMD Int SubWords(Int a, Int b) { return _mm512_sub_epi32(a, b); }
  TANDEM_SIMD Int And(Int a, Int b) { return _mm512_and_si512(a, b); }
  TANDEM_SIMD Int Or(Int a, Int b) { return _mm512_or_si512(a, b); }
  TANDEM_SIMD Int Xor(Int a, Int b) { return _mm512_xor_si512(a, b); }
  template <int kBits>
  TANDEM_SIMD Int ShiftRight(Int a) {
    return _mm512_srli_epi32(a, kBits);
  }
  template <int kBits>
  TANDEM_SIMD Int ShiftLeft(Int a) {
    return _mm512_slli_epi32(a, kBits);
  }
  TANDEM_SIMD Int ShiftRightBy(Int a, int bits) {
    return _mm512_srli_epi32(a, static_cast<unsigned>(bits));
  }
  TANDEM_SIMD Int ShiftLeftBy(Int a, int bits) {
    return _mm512_slli_epi32(a, static_cast<unsigned>(bits));
  }
  template <int kBits>
  TANDEM_SIMD Int ShiftRightSigned(Int a) {
    return _mm512_srai_epi32(a, kBits);
  }
  TANDEM_SIMD Int Broadcast(const void* word) {
    int32_t value;
    std::memcpy(&value, word, sizeof(value));
    return _mm512_set1_epi32(value);
  }
  TANDEM_SIMD Int FifthBits(Int bits, int nibble) {
    return _mm512_maskz_mov_epi8(MaskOfBits(bits, nibble), Bytes(16));
  }
  TANDEM_SIMD Int Negate(Int bytes, Int bits, int nibble) {
    return _mm512_mask_sub_epi8(bytes, MaskOfBits(bits, nibble), _mm512_setzero_si512(), bytes);
  }

  TANDEM_SIMD Int Table(const int8_t* bytes) {
    return _mm512_broadcast_i32x4(_mm_loadu_si128(reinterpret_cast<const __m128i*>(bytes)));
  }
  TANDEM_SIMD Int Lookup(Int table, Int indices) { return _mm512_shuffle_epi8(table, indices); }

  TANDEM_SIMD Int LookUpWord(const uint32_t* words, Int index) {
    return Joined(LookUpWords(words, Half(index, 0)), LookUpWords(words, Half(index, 1)));
  }
  TANDEM_SIMD void LookUpPair(const uint32_t* words, Int index, Int* out) {
    const EightIndices low = Half(index, 0), high = Half(index, 1);
    const Float a =
        _mm512_castsi512_ps(Joined(LookUpPairs(words, low, 0), LookUpPairs(words, high, 0)));
    const Float b =
        _mm512_castsi512_ps(Joined(LookUpPairs(words, low, 2), LookUpPairs(words, high, 2)));
    out[0] = _mm512_castps_si512(_mm512_shuffle_ps(a, b, 0x88));
    out[1] = _mm512_castps_si512(_mm512_shuffle_ps(a, b, 0xdd));
  }

#if defined(__AVX512VNNI__)
  // sum + four products of bytes per lane; `w` is unsigned.
  TANDEM_SIMD Int Dot(Int sum, Int w, Int x) { return _mm512_dpbusd_epi32(sum, w, x); }
#endif
  template <bool kSigned>
  TANDEM_SIMD Int PairProducts(Int w, Int x) {
    if constexpr (!kSigned) return _mm512_maddubs_epi16(w, x);
    const Int signed_x = _mm512_mask_sub_epi8(x, _mm512_movepi8_mask(w), _mm512_setzero_si512(), x);
    return _mm512_maddubs_epi16(_mm512_abs_epi8(w), signed_x);
  }
  TANDEM_SIMD Int AddPairs(Int a, Int b) { return InOrder(_mm512_add_epi16(a, b)); }
  template <int kBits>
  TANDEM_SIMD Int ShiftPairsLeft(Int a) {
    return _mm512_slli_epi16(a, kBits);
  }
  TANDEM_SIMD Int SumPairs(Int pairs) { return _mm512_madd_epi16(pairs, _mm512_set1_epi16(1)); }
  TANDEM_SIMD Int AddWords(Int a, Int b) { return InOrder(_mm512_add_epi32(a, b)); }

  // Byte kIndex of each lane.
  template <int kIndex>
  TANDEM_SIMD Int Byte(Int a) {
    return And(ShiftRight<8 * kIndex>(a), _mm512_set1_epi32(0xff));
  }
  template <int kIndex>
  TANDEM_SIMD Int SignedByte(Int a) {
    return ShiftRightSigned<24>(ShiftLeft<24 - 8 * kIndex>(a));
  }

  // --- floats ---
  TANDEM_SIMD Float Zero() { return _mm512_setzero_ps(); }
  TANDEM_SIMD Float ToFloat(Int a) { return _mm512_cvtepi32_ps(a); }
  TANDEM_SIMD Float AsFloat(Int a) { return _mm512_castsi512_ps(a); }
  TANDEM_SIMD Float BroadcastFloat(const float* a) { return _mm512_set1_ps(*a); }
  TANDEM_SIMD Float LoadFloat(const float* a) { return _mm512_loadu_ps(a); }
  TANDEM_SIMD Float Add(Float a, Float b) { return _mm512_add_ps(a, b); }
  TANDEM_SIMD Float Sub(Float a, Float b) { return _mm512_sub_ps(a, b); }
  TANDEM_SIMD Float Mul(Float a, Float b) { return _mm512_mul_ps(a, b); }
  TANDEM_SIMD Float MulAdd(Float a, Float b, Float c) { return _mm512_fmadd_ps(a, b, c); }
  TANDEM_SIMD Float NegMulAdd(Float a, Float b, Float c) { return _mm512_fnmadd_ps(a, b, c); }
  TANDEM_SIMD Float HalfToFloat(Int a) { return _mm512_cvtph_ps(_mm512_cvtepi32_epi16(a)); }
  // The two halves of each lane.
  TANDEM_SIMD void HalvesToFloats(Int a, Float* low, Float* high) {
    *low = HalfToFloat(a);
    *high = HalfToFloat(ShiftRight<16>(a));
  }
  TANDEM_SIMD void Store(float* out, Float a) { _mm512_storeu_ps(out, a); }

  // --- loads of a panel: a row per lane ---
  TANDEM_SIMD Int LoadLanes(const std::byte* words) {
    return _mm512_loadu_si512(reinterpret_cast<const void*>(words));
  }
  TANDEM_SIMD Float LoadHalves(const std::byte* halves) { return _mm512_cvtph_ps(Load(halves)); }
  TANDEM_SIMD Int LoadByteLanes(const std::byte* bytes) {
    return _mm512_cvtepu8_epi32(LoadQuarter(bytes));
  }

  // --- loads of several rows ---
  TANDEM_SIMD void Load32(const Rows& rows, size_t offset, Int* out) {
    // Rows are paired so that the 128-bit parts of the result come out in order.
    Int r[8];
#pragma GCC unroll 8
    for (int i = 0; i < 8; ++i) {
      const int first = i % 4 + i / 4 * 8;
      r[i] = _mm512_inserti64x4(_mm512_castsi256_si512(Load(rows.row[first] + offset)),
                                Load(rows.row[first + 4] + offset), 1);
    }
    Int t[8];
#pragma GCC unroll 4
    for (int h = 0; h < 2; ++h) Transpose4(r + 4 * h, t + 4 * h);
#pragma GCC unroll 4
    for (int j = 0; j < 4; ++j) {
      out[j] = _mm512_shuffle_i64x2(t[j], t[j + 4], 0x88);
      out[j + 4] = _mm512_shuffle_i64x2(t[j], t[j + 4], 0xdd);
    }
  }
  TANDEM_SIMD void Load16(const Rows& rows, size_t offset, Int* out) {
    Int r[4];
#pragma GCC unroll 4
    for (int i = 0; i < 4; ++i) {
      r[i] = _mm512_castsi128_si512(LoadQuarter(rows.row[i] + offset));
      r[i] = _mm512_inserti32x4(r[i], LoadQuarter(rows.row[i + 4] + offset), 1);
      r[i] = _mm512_inserti32x4(r[i], LoadQuarter(rows.row[i + 8] + offset), 2);
      r[i] = _mm512_inserti32x4(r[i], LoadQuarter(rows.row[i + 12] + offset), 3);
    }
    Transpose4(r, out);
  }
  TANDEM_SIMD Int LoadWord(const Rows& rows, size_t offset) {
    return _mm512_i32gather_epi32(_mm512_load_si512(rows.offset), rows.row[0] + offset, 1);
  }

 private:
  TANDEM_SIMD EightIndices Half(Int index, int at) {
    return EightIndices(at == 0 ? _mm512_castsi512_si256(index)
                                : _mm512_extracti64x4_epi64(index, 1));
  }
  TANDEM_SIMD Int Joined(__m256i low, __m256i high) {
    return _mm512_inserti64x4(_mm512_castsi256_si512(low), high, 1);
  }
  TANDEM_SIMD __mmask64 MaskOfBits(Int bits, int nibble) {
    const int byte = nibble / 2;
    const int mask = nibble % 2 == 0 ? 0x08040201 : static_cast<int>(0x80402010);
    const Int spread = _mm512_shuffle_epi8(
        bits, _mm512_set4_epi32((byte + 12) * 0x01010101, (byte + 8) * 0x01010101,
                                (byte + 4) * 0x01010101, byte * 0x01010101));
    return _mm512_test_epi8_mask(spread, _mm512_set1_epi32(mask));
  }
  // As in simd_avx2.h.
  TANDEM_SIMD Int InOrder(Int sum) {
#if defined(TANDEM_SIMD_EMULATION)
    asm("" : "+m"(sum));
#else
    asm("" : "+v"(sum));
#endif
    return sum;
  }
  TANDEM_SIMD __m256i Load(const std::byte* p) {
    return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(p));
  }
  TANDEM_SIMD __m128i LoadQuarter(const std::byte* p) {
    return _mm_loadu_si128(reinterpret_cast<const __m128i*>(p));
  }
  TANDEM_SIMD void Transpose4(const Int* r, Int* out) {
    const Int a = _mm512_unpacklo_epi32(r[0], r[1]);
    const Int b = _mm512_unpackhi_epi32(r[0], r[1]);
    const Int c = _mm512_unpacklo_epi32(r[2], r[3]);
    const Int d = _mm512_unpackhi_epi32(r[2], r[3]);
    out[0] = _mm512_unpacklo_epi64(a, c);
    out[1] = _mm512_unpackhi_epi64(a, c);
    out[2] = _mm512_unpacklo_epi64(b, d);
    out[3] = _mm512_unpackhi_epi64(b, d);
  }
};

#if defined(__AVX512BF16__)
struct Avx512Bf16 : Avx512<false> {
  // sum + two products of BF16 per lane, each added with one rounding, the upper half's first.
  TANDEM_SIMD Float DotPairs(Int w, Int x, Float sum) {
    return _mm512_dpbf16_ps(sum, reinterpret_cast<__m512bh>(w), reinterpret_cast<__m512bh>(x));
  }
};
#endif

}  // namespace tandem::kernels::cpu

#undef TANDEM_SIMD
#endif

#endif  // TANDEM_KERNELS_CPU_MATMUL_SIMD_AVX512_H_
