// The int8 scheme of the cpu backend's MatMul in scalar code, from the formats' definitions: the
// bits that every instruction set must give.
#ifndef TANDEM_TESTS_KERNELS_MATMUL_EMULATION_H_
#define TANDEM_TESTS_KERNELS_MATMUL_EMULATION_H_

#include <cmath>
#include <cstdint>
#include <vector>

#include "common/tensor/blocks_of_256.h"
#include "common/tensor/blocks_of_32.h"
#include "common/tensor/blocks_of_64.h"
#include "common/tensor/blocks_of_few_bits.h"
#include "common/tensor/blocks_of_grids.h"
#include "common/tensor/dequantize.h"
#include "common/tensor/f16.h"

namespace tandem::kernels {

// Values that share one scale: weight[i] = scale * q[i] - min.
struct Group {
  float scale = 0;
  float min = 0;
  bool has_min = false;
  std::vector<int> q;
};

inline float ScaleOf(uint16_t half) { return tensor::HalfToFloat(half); }

inline void AppendGroups(const tensor::BlockQ8_0& b, std::vector<Group>* out) {
  out->push_back({ScaleOf(b.d), 0, false, {b.qs, b.qs + 32}});
}

inline void AppendGroups(const tensor::BlockQ4_0& b, std::vector<Group>* out) {
  Group g{ScaleOf(b.d), 0, false, std::vector<int>(32)};
  for (int i = 0; i < 32; ++i) g.q[i] = (i < 16 ? b.qs[i] & 15 : b.qs[i - 16] >> 4) - 8;
  out->push_back(g);
}

inline void AppendGroups(const tensor::BlockQ5_0& b, std::vector<Group>* out) {
  Group g{ScaleOf(b.d), 0, false, std::vector<int>(32)};
  for (int i = 0; i < 32; ++i) {
    const int low = i < 16 ? b.qs[i] & 15 : b.qs[i - 16] >> 4;
    g.q[i] = (low | static_cast<int>((b.HighBits() >> i & 1) << 4)) - 16;
  }
  out->push_back(g);
}

// The minimum as the kernels have it: what is subtracted.
inline void AppendGroups(const tensor::BlockQ4_1& b, std::vector<Group>* out) {
  Group g{ScaleOf(b.d), -ScaleOf(b.m), true, std::vector<int>(32)};
  for (int i = 0; i < 32; ++i) g.q[i] = i < 16 ? b.qs[i] & 15 : b.qs[i - 16] >> 4;
  out->push_back(g);
}

inline void AppendGroups(const tensor::BlockQ5_1& b, std::vector<Group>* out) {
  Group g{ScaleOf(b.d), -ScaleOf(b.m), true, std::vector<int>(32)};
  for (int i = 0; i < 32; ++i) {
    const int low = i < 16 ? b.qs[i] & 15 : b.qs[i - 16] >> 4;
    g.q[i] = low | static_cast<int>((b.HighBits() >> i & 1) << 4);
  }
  out->push_back(g);
}

// Formats that know a group's scale and a value's bits: `scales` has Scale and, if kMins, Min.
template <bool kMins, typename Block, typename Scales>
void AppendGroupsOf(const Block& b, const Scales& scales, int offset, std::vector<Group>* out) {
  for (int g = 0; g < Block::kGroups; ++g) {
    Group group{ScaleOf(b.d) * static_cast<float>(scales.Scale(g)), 0, kMins, {}};
    if constexpr (kMins) group.min = ScaleOf(b.dmin) * static_cast<float>(scales.Min(g));
    for (int i = 0; i < Block::kGroupValues; ++i) {
      group.q.push_back(b.Value(Block::kGroupValues * g + i) - offset);
    }
    out->push_back(group);
  }
}

inline void AppendGroups(const tensor::BlockQ2_K& b, std::vector<Group>* out) {
  AppendGroupsOf<true>(b, b, 0, out);
}
inline void AppendGroups(const tensor::BlockQ3_K& b, std::vector<Group>* out) {
  AppendGroupsOf<false>(b, b, 4, out);
}
inline void AppendGroups(const tensor::BlockQ4_K& b, std::vector<Group>* out) {
  AppendGroupsOf<true>(b, b.scales, 0, out);
}
inline void AppendGroups(const tensor::BlockQ5_K& b, std::vector<Group>* out) {
  AppendGroupsOf<true>(b, b.scales, 0, out);
}

inline Group CodebookGroup(float scale, const uint8_t* qs, const tensor::Codebook& codebook) {
  Group g{scale, 0, false, std::vector<int>(32)};
  for (int i = 0; i < 32; ++i) g.q[i] = codebook.value[i < 16 ? qs[i] & 15 : qs[i - 16] >> 4];
  return g;
}

inline void AppendGroups(const tensor::BlockIQ4_NL& b, std::vector<Group>* out) {
  out->push_back(CodebookGroup(ScaleOf(b.d), b.qs, tensor::kIq4Codebook));
}

inline void AppendGroups(const tensor::BlockIQ4_XS& b, std::vector<Group>* out) {
  for (int g = 0; g < 8; ++g) {
    out->push_back(CodebookGroup(ScaleOf(b.d) * static_cast<float>(b.Scale(g)), b.qs + 16 * g,
                                 tensor::kIq4Codebook));
  }
}

inline void AppendGroups(const tensor::BlockMXFP4& b, std::vector<Group>* out) {
  out->push_back(CodebookGroup(std::ldexp(1.0f, b.e - 128), b.qs, tensor::kMxfp4Codebook));
}

inline void AppendGroups(const tensor::BlockNVFP4& b, std::vector<Group>* out) {
  for (int i = 0; i < 64; ++i) {
    if (i % 16 == 0) out->push_back({b.Scale(i / 16), 0, false, {}});
    out->back().q.push_back(tensor::kMxfp4Codebook.value[b.Index(i)]);
  }
}

inline void AppendGroups(const tensor::BlockQ6_K& b, std::vector<Group>* out) {
  for (int g = 0; g < 16; ++g) {
    Group group{ScaleOf(b.d) * static_cast<float>(b.scales[g]), 0, false, std::vector<int>(16)};
    for (int j = 0; j < 16; ++j) {
      const int i = 16 * g + j;
      const int half = i / 128, k = i % 128 / 32, l = i % 32;
      const int low = b.ql[64 * half + 32 * (k % 2) + l] >> (k < 2 ? 0 : 4) & 15;
      const int high = b.qh[32 * half + l] >> (2 * k) & 3;
      group.q[j] = (low | high << 4) - 32;
    }
    out->push_back(group);
  }
}

// Entries of grids; value(run, entry) is what one stands for.
template <typename Block, typename Value>
void AppendGridGroups(const Block& b, float d, const Value& value, std::vector<Group>* out) {
  for (int i = 0; i < Block::kValues; ++i) {
    const int run = i / Block::kRun;
    if (i % Block::kGroupValues == 0) {
      out->push_back({d * Block::kUnit * static_cast<float>(b.Scale(run)), 0, false, {}});
    }
    const size_t in_run = static_cast<size_t>(i % Block::kRun);
    out->back().q.push_back(value(run, in_run, Block::kGrid.Value(b.Index(run), in_run)));
  }
}
template <typename Block>
void AppendSignedGroups(const Block& b, std::vector<Group>* out) {
  const auto value = [&b](int run, size_t i, int entry) {
    return (b.Signs(run) >> i & 1) != 0 ? -entry : entry;
  };
  AppendGridGroups(b, ScaleOf(b.d), value, out);
}
template <typename Block>
void AppendEighthGroups(const Block& b, uint16_t half, std::vector<Group>* out) {
  const auto value = [&b](int run, size_t /*i*/, int entry) {
    return entry - tensor::kIq1Offset + b.Eighth(run);
  };
  AppendGridGroups(b, ScaleOf(half), value, out);
}
inline void AppendGroups(const tensor::BlockIQ2_XXS& b, std::vector<Group>* out) {
  AppendSignedGroups(b, out);
}
inline void AppendGroups(const tensor::BlockIQ2_XS& b, std::vector<Group>* out) {
  AppendSignedGroups(b, out);
}
inline void AppendGroups(const tensor::BlockIQ2_S& b, std::vector<Group>* out) {
  AppendSignedGroups(b, out);
}
inline void AppendGroups(const tensor::BlockIQ3_XXS& b, std::vector<Group>* out) {
  AppendSignedGroups(b, out);
}
inline void AppendGroups(const tensor::BlockIQ3_S& b, std::vector<Group>* out) {
  AppendSignedGroups(b, out);
}
inline void AppendGroups(const tensor::BlockIQ1_S& b, std::vector<Group>* out) {
  AppendEighthGroups(b, b.d, out);
}
inline void AppendGroups(const tensor::BlockIQ1_M& b, std::vector<Group>* out) {
  AppendEighthGroups(b, b.Half(), out);
}

template <typename Block>
void AppendFewBits(const Block& b, std::vector<Group>* out) {
  for (int i = 0; i < Block::kValues; ++i) {
    if (i % 32 == 0) out->push_back({ScaleOf(b.d), 0, false, {}});
    out->back().q.push_back(b.Value(i));
  }
}
inline void AppendGroups(const tensor::BlockQ1_0& b, std::vector<Group>* out) {
  AppendFewBits(b, out);
}
inline void AppendGroups(const tensor::BlockQ2_0& b, std::vector<Group>* out) {
  AppendFewBits(b, out);
}
inline void AppendGroups(const tensor::BlockTQ1_0& b, std::vector<Group>* out) {
  AppendFewBits(b, out);
}
inline void AppendGroups(const tensor::BlockTQ2_0& b, std::vector<Group>* out) {
  AppendFewBits(b, out);
}

template <typename Block>
std::vector<Group> GroupsOf(const std::byte* row, uint32_t cols) {
  std::vector<Group> groups;
  for (uint32_t b = 0; b < cols / Block::kValues; ++b) {
    AppendGroups(reinterpret_cast<const Block*>(row)[b], &groups);
  }
  return groups;
}

inline std::vector<Group> GroupsOf(tensor::Type type, const std::byte* row, uint32_t cols) {
  switch (type) {
    case tensor::Type::kQ8_0:
      return GroupsOf<tensor::BlockQ8_0>(row, cols);
    case tensor::Type::kQ4_0:
      return GroupsOf<tensor::BlockQ4_0>(row, cols);
    case tensor::Type::kQ5_0:
      return GroupsOf<tensor::BlockQ5_0>(row, cols);
    case tensor::Type::kQ4_K:
      return GroupsOf<tensor::BlockQ4_K>(row, cols);
    case tensor::Type::kQ6_K:
      return GroupsOf<tensor::BlockQ6_K>(row, cols);
    case tensor::Type::kIQ4_NL:
      return GroupsOf<tensor::BlockIQ4_NL>(row, cols);
    case tensor::Type::kIQ4_XS:
      return GroupsOf<tensor::BlockIQ4_XS>(row, cols);
    case tensor::Type::kMXFP4:
      return GroupsOf<tensor::BlockMXFP4>(row, cols);
    case tensor::Type::kNVFP4:
      return GroupsOf<tensor::BlockNVFP4>(row, cols);
    case tensor::Type::kQ2_K:
      return GroupsOf<tensor::BlockQ2_K>(row, cols);
    case tensor::Type::kQ3_K:
      return GroupsOf<tensor::BlockQ3_K>(row, cols);
    case tensor::Type::kQ4_1:
      return GroupsOf<tensor::BlockQ4_1>(row, cols);
    case tensor::Type::kQ5_1:
      return GroupsOf<tensor::BlockQ5_1>(row, cols);
    case tensor::Type::kQ5_K:
      return GroupsOf<tensor::BlockQ5_K>(row, cols);
    case tensor::Type::kIQ1_S:
      return GroupsOf<tensor::BlockIQ1_S>(row, cols);
    case tensor::Type::kIQ1_M:
      return GroupsOf<tensor::BlockIQ1_M>(row, cols);
    case tensor::Type::kIQ2_XXS:
      return GroupsOf<tensor::BlockIQ2_XXS>(row, cols);
    case tensor::Type::kIQ2_XS:
      return GroupsOf<tensor::BlockIQ2_XS>(row, cols);
    case tensor::Type::kIQ2_S:
      return GroupsOf<tensor::BlockIQ2_S>(row, cols);
    case tensor::Type::kIQ3_XXS:
      return GroupsOf<tensor::BlockIQ3_XXS>(row, cols);
    case tensor::Type::kIQ3_S:
      return GroupsOf<tensor::BlockIQ3_S>(row, cols);
    case tensor::Type::kQ1_0:
      return GroupsOf<tensor::BlockQ1_0>(row, cols);
    case tensor::Type::kQ2_0:
      return GroupsOf<tensor::BlockQ2_0>(row, cols);
    case tensor::Type::kTQ1_0:
      return GroupsOf<tensor::BlockTQ1_0>(row, cols);
    case tensor::Type::kTQ2_0:
      return GroupsOf<tensor::BlockTQ2_0>(row, cols);
    default:
      return {};
  }
}

// 32 activations as bytes.
struct ByteBlock {
  float d = 0;
  int q[32] = {};
};

inline std::vector<ByteBlock> ToBytes(const float* x, uint32_t cols) {
  std::vector<ByteBlock> blocks(cols / 32);
  for (size_t b = 0; b < blocks.size(); ++b) {
    float max = 0;
    for (int i = 0; i < 32; ++i) max = std::fmax(max, std::fabs(x[32 * b + i]));
    if (max < 0x1p-100f) continue;
    blocks[b].d = max / 127.0f;
    const float inverse = 127.0f / max;
    for (int i = 0; i < 32; ++i) {
      blocks[b].q[i] = static_cast<int>(std::nearbyint(x[32 * b + i] * inverse));
    }
  }
  return blocks;
}

// One element of y. `x` covers all columns of the row, finite.
inline float EmulateQuantised(const std::vector<Group>& row, const std::vector<ByteBlock>& x) {
  float acc = 0;
  size_t at = 0;
  for (const Group& group : row) {
    const ByteBlock& block = x[at / 32];
    int dot = 0, sum = 0;
    for (size_t i = 0; i < group.q.size(); ++i) {
      dot += group.q[i] * block.q[(at + i) % 32];
      sum += block.q[(at + i) % 32];
    }
    acc = std::fma(static_cast<float>(dot), group.scale * block.d, acc);
    if (group.has_min) acc = std::fma(-group.min, block.d * static_cast<float>(sum), acc);
    at += group.q.size();
  }
  return acc;
}

// The same for a plain weight: chains of 32 columns.
inline float EmulateFloat(const float* row, const float* x, uint32_t cols) {
  float acc = 0;
  for (uint32_t c = 0; c < cols; c += 32) {
    float sum = 0;
    for (uint32_t i = c; i < cols && i < c + 32; ++i) sum = std::fma(row[i], x[i], sum);
    acc += sum;
  }
  return acc;
}

inline float RoundToBf16(float value) { return tensor::Bf16ToFloat(tensor::FloatToBf16(value)); }

// BF16 weights with `x` rounded to BF16: in a chain, the second column of each two comes first.
inline float EmulateBf16(const float* row, const float* x, uint32_t cols) {
  float acc = 0;
  for (uint32_t c = 0; c < cols; c += 32) {
    float sum = 0;
    for (uint32_t i = c; i < cols && i < c + 32; i += 2) {
      if (i + 1 < cols) sum = std::fma(row[i + 1], RoundToBf16(x[i + 1]), sum);
      sum = std::fma(row[i], RoundToBf16(x[i]), sum);
    }
    acc += sum;
  }
  return acc;
}

}  // namespace tandem::kernels

#endif  // TANDEM_TESTS_KERNELS_MATMUL_EMULATION_H_
