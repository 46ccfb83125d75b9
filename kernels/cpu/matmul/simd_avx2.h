// AVX2 (with FMA and F16C; AVX-VNNI where kVnni) as used by the templates of this folder: 8 rows of
// the weight side by side, one per 32-bit lane.
//
// Include only from files that are compiled for AVX2: nothing here may be inlined elsewhere.
#ifndef TANDEM_KERNELS_CPU_MATMUL_SIMD_AVX2_H_
#define TANDEM_KERNELS_CPU_MATMUL_SIMD_AVX2_H_

#if defined(__AVX2__) && defined(__FMA__) && defined(__F16C__)

#include <immintrin.h>

#include <cstdint>
#include <cstring>

#include "kernels/cpu/matmul/look_up.h"
#include "kernels/cpu/matmul/rows.h"

#define TANDEM_SIMD [[gnu::always_inline]] static inline

namespace tandem::kernels::cpu {

template <bool kHasVnni>
struct Avx2 {
  static constexpr int kLanes = 8;
  // Tokens of a set, whose sums are in registers, all or most of them, of kGroups groups of rows:
  static constexpr int kTokens = 3;
  static constexpr int kTokensOfOneScale = 4;             // and no minimums
  static constexpr int kTokensOfMany = kHasVnni ? 3 : 4;  // at most, of many tokens
  static constexpr int kTokensOfFloats = 6;
  // The same of one group, whose words may be unpacked in registers, too:
  static constexpr int kTokensOfGroup = kHasVnni ? 6 : 4;
  static constexpr int kTokensOfSignedGroup = 8;  // of signed bytes, without VNNI
  static constexpr int kTokensInPlace = kTokensOfGroup;
  static constexpr uint32_t kPieceBytes = 10240;  // of a group, in the L1 cache
  static constexpr int kGroups = 2;
  // Whether few tokens are multiplied with two panels at once, unpacked as they are read.
  static constexpr bool kPairsOfFew = !kHasVnni;
  // Without VNNI signed weights stay signed: products of 8-bit pairs would overflow 16 bits with an
  // offset of 128.
  static constexpr bool kVnni = kHasVnni;
  // Whether products of any number of tokens read panels in place where words are units, and up to
  // how many tokens where they are unpacked: for more it is no gain.
  static constexpr bool kInPlace = kHasVnni;
  static constexpr uint32_t kMostInPlace = kTokensInPlace;
  static constexpr bool kSplitsSigns = !kHasVnni;  // of signed bytes (tile.h)
  using Int = __m256i;
  using Float = __m256;
  using Rows = RowPointers<kLanes>;

  // --- bytes and integers ---
  TANDEM_SIMD Int Bytes(int value) { return _mm256_set1_epi8(static_cast<char>(value)); }
  TANDEM_SIMD Int Words(int32_t value) { return _mm256_set1_epi32(value); }
  TANDEM_SIMD Int AddBytes(Int a, Int b) { return _mm256_add_epi8(a, b); }
  TANDEM_SIMD Int SubWords(Int a, Int b) { return _mm256_sub_epi32(a, b); }
  TANDEM_SIMD Int And(Int a, Int b) { return _mm256_and_si256(a, b); }
  TANDEM_SIMD Int Or(Int a, Int b) { return _mm256_or_si256(a, b); }
  TANDEM_SIMD Int Xor(Int a, Int b) { return _mm256_xor_si256(a, b); }
  template <int kBits>
  TANDEM_SIMD Int ShiftRight(Int a) {
    return _mm256_srli_epi32(a, kBits);
  }
  template <int kBits>
  TANDEM_SIMD Int ShiftLeft(Int a) {
    return _mm256_slli_epi32(a, kBits);
  }
  // By a number that is known once the caller is inlined.
  TANDEM_SIMD Int ShiftRightBy(Int a, int bits) { return _mm256_srli_epi32(a, bits); }
  TANDEM_SIMD Int ShiftLeftBy(Int a, int bits) { return _mm256_slli_epi32(a, bits); }
  template <int kBits>
  TANDEM_SIMD Int ShiftRightSigned(Int a) {
    return _mm256_srai_epi32(a, kBits);
  }
  TANDEM_SIMD Int Broadcast(const void* word) {
    int32_t value;
    std::memcpy(&value, word, sizeof(value));
    return _mm256_set1_epi32(value);
  }
  // Byte i of each lane is 16 where bit 4 * nibble + i of the lane is set.
  TANDEM_SIMD Int FifthBits(Int bits, int nibble) {
    return _mm256_and_si256(BytesOfBits(bits, nibble), Bytes(16));
  }
  // Byte i of each lane is negated where bit 4 * nibble + i of `bits` is set.
  TANDEM_SIMD Int Negate(Int bytes, Int bits, int nibble) {
    const Int all = BytesOfBits(bits, nibble);
    return _mm256_sub_epi8(_mm256_xor_si256(bytes, all), all);
  }

  // Sixteen bytes to look up, and byte table[i] for each byte i in [0, 16).
  TANDEM_SIMD Int Table(const int8_t* bytes) {
    return _mm256_broadcastsi128_si256(_mm_loadu_si128(reinterpret_cast<const __m128i*>(bytes)));
  }
  TANDEM_SIMD Int Lookup(Int table, Int indices) { return _mm256_shuffle_epi8(table, indices); }

  // Word index[i] of `words` for each lane i.
  TANDEM_SIMD Int LookUpWord(const uint32_t* words, Int index) {
    return LookUpWords(words, EightIndices(index));
  }
  // Words 2 * index[i] and 2 * index[i] + 1.
  TANDEM_SIMD void LookUpPair(const uint32_t* words, Int index, Int* out) {
    const EightIndices of(index);
    const Float a = _mm256_castsi256_ps(LookUpPairs(words, of, 0));
    const Float b = _mm256_castsi256_ps(LookUpPairs(words, of, 2));
    out[0] = _mm256_castps_si256(_mm256_shuffle_ps(a, b, 0x88));
    out[1] = _mm256_castps_si256(_mm256_shuffle_ps(a, b, 0xdd));
  }

#if defined(__AVXVNNI__)
  // sum + four products of bytes per lane; `w` is unsigned.
  TANDEM_SIMD Int Dot(Int sum, Int w, Int x) { return _mm256_dpbusd_avx_epi32(sum, w, x); }
#endif
  // Of signed bytes: 0xff where they are negative, and unsigned.
  TANDEM_SIMD Int Signs(Int w) { return _mm256_cmpgt_epi8(_mm256_setzero_si256(), w); }
  TANDEM_SIMD Int Magnitudes(Int w) { return _mm256_abs_epi8(w); }
  // Products of bytes, added in pairs to 16 bits. `w` is unsigned and at most 128, or signed if
  // kSigned; `x` lies in [-128, 127], in [-127, 127] with kSigned.
  template <bool kSigned>
  TANDEM_SIMD Int PairProducts(Int w, Int x) {
    return kSigned ? _mm256_maddubs_epi16(_mm256_abs_epi8(w), _mm256_sign_epi8(x, w))
                   : _mm256_maddubs_epi16(w, x);
  }
  TANDEM_SIMD Int AddPairs(Int a, Int b) { return InOrder(_mm256_add_epi16(a, b)); }
  template <int kBits>
  TANDEM_SIMD Int ShiftPairsLeft(Int a) {
    return _mm256_slli_epi16(a, kBits);
  }
  // The sum of the two pairs of each lane.
  TANDEM_SIMD Int SumPairs(Int pairs) { return _mm256_madd_epi16(pairs, _mm256_set1_epi16(1)); }
  TANDEM_SIMD Int AddWords(Int a, Int b) { return InOrder(_mm256_add_epi32(a, b)); }

  // Byte kIndex of each lane.
  template <int kIndex>
  TANDEM_SIMD Int Byte(Int a) {
    return And(ShiftRight<8 * kIndex>(a), _mm256_set1_epi32(0xff));
  }
  template <int kIndex>
  TANDEM_SIMD Int SignedByte(Int a) {
    return ShiftRightSigned<24>(ShiftLeft<24 - 8 * kIndex>(a));
  }

  // --- floats ---
  TANDEM_SIMD Float Zero() { return _mm256_setzero_ps(); }
  TANDEM_SIMD Float ToFloat(Int a) { return _mm256_cvtepi32_ps(a); }
  TANDEM_SIMD Float AsFloat(Int a) { return _mm256_castsi256_ps(a); }
  TANDEM_SIMD Float BroadcastFloat(const float* a) { return _mm256_broadcast_ss(a); }
  TANDEM_SIMD Float LoadFloat(const float* a) { return _mm256_loadu_ps(a); }
  TANDEM_SIMD Float Add(Float a, Float b) { return _mm256_add_ps(a, b); }
  TANDEM_SIMD Float Sub(Float a, Float b) { return _mm256_sub_ps(a, b); }
  TANDEM_SIMD Float Mul(Float a, Float b) { return _mm256_mul_ps(a, b); }
  TANDEM_SIMD Float MulAdd(Float a, Float b, Float c) { return _mm256_fmadd_ps(a, b, c); }
  TANDEM_SIMD Float NegMulAdd(Float a, Float b, Float c) { return _mm256_fnmadd_ps(a, b, c); }
  // The half in the low 16 bits of each lane.
  TANDEM_SIMD Float HalfToFloat(Int a) {
    const Int low = _mm256_and_si256(a, _mm256_set1_epi32(0xffff));
    const Int packed = _mm256_permute4x64_epi64(_mm256_packus_epi32(low, low), 0x08);
    return _mm256_cvtph_ps(_mm256_castsi256_si128(packed));
  }
  // The two halves of each lane.
  TANDEM_SIMD void HalvesToFloats(Int a, Float* low, Float* high) {
    // The low halves of four lanes, then the high ones; then those of all lanes.
    const Int apart =
        _mm256_shuffle_epi8(a, _mm256_setr_epi32(0x05040100, 0x0d0c0908, 0x07060302, 0x0f0e0b0a,
                                                 0x05040100, 0x0d0c0908, 0x07060302, 0x0f0e0b0a));
    const Int halves = _mm256_permute4x64_epi64(apart, 0xd8);
    *low = _mm256_cvtph_ps(_mm256_castsi256_si128(halves));
    *high = _mm256_cvtph_ps(_mm256_extracti128_si256(halves, 1));
  }
  TANDEM_SIMD void Store(float* out, Float a) { _mm256_storeu_ps(out, a); }

  // --- loads of a panel: a row per lane ---
  TANDEM_SIMD Int LoadLanes(const std::byte* words) { return Load(words); }
  TANDEM_SIMD Float LoadHalves(const std::byte* halves) {
    return _mm256_cvtph_ps(LoadHalf(halves));
  }
  TANDEM_SIMD Int LoadByteLanes(const std::byte* bytes) {
    return _mm256_cvtepu8_epi32(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(bytes)));
  }

  // --- loads of several rows ---
  // Transposes 32 bytes of each row: out[j] holds bytes 4j .. 4j+3.
  TANDEM_SIMD void Load32(const Rows& rows, size_t offset, Int* out) {
    Int r[8];
#pragma GCC unroll 8
    for (int i = 0; i < 8; ++i) r[i] = Load(rows.row[i] + offset);
    Int t[8];
#pragma GCC unroll 4
    for (int h = 0; h < 2; ++h) Transpose4(r + 4 * h, t + 4 * h);
#pragma GCC unroll 4
    for (int j = 0; j < 4; ++j) {
      out[j] = _mm256_permute2x128_si256(t[j], t[j + 4], 0x20);
      out[j + 4] = _mm256_permute2x128_si256(t[j], t[j + 4], 0x31);
    }
  }
  // Transposes 16 bytes of each row: out[j] holds bytes 4j .. 4j+3.
  TANDEM_SIMD void Load16(const Rows& rows, size_t offset, Int* out) {
    Int r[4];
#pragma GCC unroll 4
    for (int i = 0; i < 4; ++i) {
      r[i] = _mm256_inserti128_si256(_mm256_castsi128_si256(LoadHalf(rows.row[i] + offset)),
                                     LoadHalf(rows.row[i + 4] + offset), 1);
    }
    Transpose4(r, out);
  }
  // 32 bits of each row.
  TANDEM_SIMD Int LoadWord(const Rows& rows, size_t offset) {
    const __m128i low = _mm_setr_epi32(Word(rows, 0, offset), Word(rows, 1, offset),
                                       Word(rows, 2, offset), Word(rows, 3, offset));
    const __m128i high = _mm_setr_epi32(Word(rows, 4, offset), Word(rows, 5, offset),
                                        Word(rows, 6, offset), Word(rows, 7, offset));
    return _mm256_inserti128_si256(_mm256_castsi128_si256(low), high, 1);
  }

 private:
  // Byte i of each lane is 0xff where bit 4 * nibble + i of the lane is set.
  TANDEM_SIMD Int BytesOfBits(Int bits, int nibble) {
    const int byte = nibble / 2;
    const Int mask = _mm256_set1_epi32(nibble % 2 == 0 ? 0x08040201 : static_cast<int>(0x80402010));
    const Int spread = _mm256_shuffle_epi8(
        bits,
        _mm256_set_epi32((byte + 12) * 0x01010101, (byte + 8) * 0x01010101, (byte + 4) * 0x01010101,
                         byte * 0x01010101, (byte + 12) * 0x01010101, (byte + 8) * 0x01010101,
                         (byte + 4) * 0x01010101, byte * 0x01010101));
    return _mm256_cmpeq_epi8(_mm256_and_si256(spread, mask), mask);
  }
  // Else gcc turns a chain of sums into a tree, whose products do not fit the registers.
  TANDEM_SIMD Int InOrder(Int sum) {
    asm("" : "+x"(sum));
    return sum;
  }
  TANDEM_SIMD Int Load(const std::byte* p) {
    return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(p));
  }
  TANDEM_SIMD __m128i LoadHalf(const std::byte* p) {
    return _mm_loadu_si128(reinterpret_cast<const __m128i*>(p));
  }
  TANDEM_SIMD int32_t Word(const Rows& rows, int i, size_t offset) {
    int32_t word;
    std::memcpy(&word, rows.row[i] + offset, sizeof(word));
    return word;
  }
  // Transposes the 4 x 4 words in each 128-bit part.
  TANDEM_SIMD void Transpose4(const Int* r, Int* out) {
    const Int a = _mm256_unpacklo_epi32(r[0], r[1]);
    const Int b = _mm256_unpackhi_epi32(r[0], r[1]);
    const Int c = _mm256_unpacklo_epi32(r[2], r[3]);
    const Int d = _mm256_unpackhi_epi32(r[2], r[3]);
    out[0] = _mm256_unpacklo_epi64(a, c);
    out[1] = _mm256_unpackhi_epi64(a, c);
    out[2] = _mm256_unpacklo_epi64(b, d);
    out[3] = _mm256_unpackhi_epi64(b, d);
  }
};

}  // namespace tandem::kernels::cpu

#undef TANDEM_SIMD
#endif

#endif  // TANDEM_KERNELS_CPU_MATMUL_SIMD_AVX2_H_
