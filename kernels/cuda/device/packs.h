// Packs: how a row of a block-quantised weight lies in device memory. For host code too.
//
// Blocks of a GGUF file begin at even or even at odd addresses, and mix scales with codes: a GPU
// would read most of them in small pieces. A pack has the fields of a few blocks apart: a head with
// the small ones (scales, say), each of all its blocks side by side, then a body with the codes of
// each block. Heads and bodies are multiples of 16 bytes.
//
//   Q8_0   d x 8 | qs | qs | ...                       272 bytes, as 8 blocks in the file
//   MXFP4  e x 16 | qs | qs | ...                      272, as 16 blocks
//   NVFP4  d x 16, scale | qs | qs | ...               592, 16 more than 16 blocks
//   Q6_K   d x 8 | ql qh scales | ql qh scales | ...   1680, as 8 blocks
//
// K-quants have bits of several groups of 32 values in one byte. In a body they are sorted by
// group, so that no word has bits of two groups.
//
// NVFP4's head also has the scale of the whole matrix (Weight::scales), which a file keeps in
// another tensor: products need not know of it.
//
// A row is packs one after another. The last may have fewer blocks than others: its head is whole,
// with zeros, and it ends with its last body. So nothing depends on the row's length.
#ifndef TANDEM_KERNELS_CUDA_DEVICE_PACKS_H_
#define TANDEM_KERNELS_CUDA_DEVICE_PACKS_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <utility>

#include "common/tensor/blocks_of_256.h"
#include "common/tensor/blocks_of_32.h"
#include "common/tensor/blocks_of_64.h"
#include "common/tensor/blocks_of_few_bits.h"
#include "common/tensor/blocks_of_grids.h"
#include "common/tensor/type.h"

namespace tandem::kernels::cuda {

inline constexpr uint32_t kPackUnit = 16;

// Consecutive bytes of a block.
struct BlockField {
  uint32_t begin = 0;  // in the file's block
  uint32_t bytes = 0;  // 0: there is none
  // Not 0: they are so many bits of each of 256 codes, and are sorted by group. In the file byte i
  // of each 32 has code i of several groups, the first lowest; their numbers are `step` apart.
  uint32_t bits = 0;
  uint32_t step = 1;
  // In device memory: from the begin of the head, of block 0, or from that of the body.
  uint32_t at = 0;
};

using BlockFields = std::array<BlockField, 3>;

struct PackLayout {
  uint32_t block_values = 0;
  uint32_t block_bytes = 0;  // in the file
  uint32_t blocks = 0;
  uint32_t head_bytes = 0;
  uint32_t body_bytes = 0;
  // In the head block i has field f at head[f].at + i * head[f].bytes.
  BlockFields head;
  BlockFields body;
  // Where the head has the matrix's scale, a float; 0: nowhere.
  uint32_t scale_at = 0;

  constexpr uint32_t values() const { return blocks * block_values; }
  constexpr uint32_t bytes() const { return head_bytes + blocks * body_bytes; }
  // cols: a multiple of block_values.
  constexpr uint64_t RowBytes(uint32_t cols) const {
    const uint32_t whole = cols / values(), rest = cols % values();
    return uint64_t{whole} * bytes() +
           (rest == 0 ? 0 : head_bytes + uint64_t{rest / block_values} * body_bytes);
  }
};

template <typename Block>
constexpr PackLayout PackOfBlocks(uint32_t blocks, BlockFields head, BlockFields body,
                                  bool has_scale = false) {
  PackLayout pack{Block::kValues, sizeof(Block), blocks, 0, 0, head, body};
  const auto padded = [](uint32_t bytes) {
    return (bytes + kPackUnit - 1) / kPackUnit * kPackUnit;
  };
  for (BlockField& field : pack.head) {
    field.at = pack.head_bytes;
    pack.head_bytes += blocks * field.bytes;
  }
  if (has_scale) pack.scale_at = std::exchange(pack.head_bytes, pack.head_bytes + sizeof(float));
  for (BlockField& field : pack.body) {
    field.at = pack.body_bytes;
    pack.body_bytes += field.bytes;
  }
  pack.head_bytes = padded(pack.head_bytes);
  pack.body_bytes = padded(pack.body_bytes);
  return pack;
}

// The packs of a block-quantised type; nothing for others. They have as many blocks as make the
// head a multiple of 16 bytes (but for Q3_K, two bytes short of it, and NVFP4, twelve) and 256
// values or more.
constexpr PackLayout PackOf(tensor::Type type) {
  using tensor::Type;
  switch (type) {      // blocks; fields of the head; fields of the body
    case Type::kQ4_0:  // d; qs
      return PackOfBlocks<tensor::BlockQ4_0>(8, {{{0, 2}}}, {{{2, 16}}});
    case Type::kQ4_1:  // d, m; qs
      return PackOfBlocks<tensor::BlockQ4_1>(8, {{{0, 4}}}, {{{4, 16}}});
    case Type::kQ5_0:  // d, qh; qs
      return PackOfBlocks<tensor::BlockQ5_0>(8, {{{0, 2}, {2, 4}}}, {{{6, 16}}});
    case Type::kQ5_1:  // d and m, qh; qs
      return PackOfBlocks<tensor::BlockQ5_1>(8, {{{0, 4}, {4, 4}}}, {{{8, 16}}});
    case Type::kQ8_0:  // d; qs
      return PackOfBlocks<tensor::BlockQ8_0>(8, {{{0, 2}}}, {{{2, 32}}});
    case Type::kIQ4_NL:  // d; qs
      return PackOfBlocks<tensor::BlockIQ4_NL>(8, {{{0, 2}}}, {{{2, 16}}});
    case Type::kMXFP4:  // e; qs
      return PackOfBlocks<tensor::BlockMXFP4>(16, {{{0, 1}}}, {{{1, 16}}});
    case Type::kNVFP4:  // d; qs
      return PackOfBlocks<tensor::BlockNVFP4>(16, {{{0, 4}}}, {{{4, 32}}}, /*has_scale=*/true);
    case Type::kIQ4_XS:  // d, scales; qs
      return PackOfBlocks<tensor::BlockIQ4_XS>(2, {{{0, 8}}}, {{{8, 128}}});
    case Type::kQ2_K:  // d, dmin; scales, qs
      return PackOfBlocks<tensor::BlockQ2_K>(4, {{{80, 4}}}, {{{0, 16}, {16, 64, 2}}});
    case Type::kQ3_K:  // scales, d; qs, hmask
      return PackOfBlocks<tensor::BlockQ3_K>(1, {{{96, 14}}}, {{{32, 64, 2}, {0, 32, 1}}});
    case Type::kQ4_K:  // d, dmin, scales; qs
      return PackOfBlocks<tensor::BlockQ4_K>(1, {{{0, 16}}}, {{{16, 128, 4}}});
    case Type::kQ5_K:  // d, dmin, scales; qs, qh
      return PackOfBlocks<tensor::BlockQ5_K>(1, {{{0, 16}}}, {{{48, 128, 4}, {16, 32, 1}}});
    case Type::kQ6_K:  // d; ql, qh, scales
      return PackOfBlocks<tensor::BlockQ6_K>(8, {{{208, 2}}},
                                             {{{0, 128, 4, 2}, {128, 64, 2}, {192, 16}}});
    case Type::kIQ1_S:  // d; qs and qh
      return PackOfBlocks<tensor::BlockIQ1_S>(8, {{{0, 2}}}, {{{2, 48}}});
    case Type::kIQ1_M:  // scales; qs and qh
      return PackOfBlocks<tensor::BlockIQ1_M>(2, {{{48, 8}}}, {{{0, 48}}});
    case Type::kIQ2_XXS:  // d; qs
      return PackOfBlocks<tensor::BlockIQ2_XXS>(8, {{{0, 2}}}, {{{2, 64}}});
    case Type::kIQ2_XS:  // d, scales; qs
      return PackOfBlocks<tensor::BlockIQ2_XS>(8, {{{0, 2}, {66, 8}}}, {{{2, 64}}});
    case Type::kIQ2_S:  // d; qs, signs, qh and scales
      return PackOfBlocks<tensor::BlockIQ2_S>(8, {{{0, 2}}}, {{{2, 80}}});
    case Type::kIQ3_XXS:  // d; qs and tails
      return PackOfBlocks<tensor::BlockIQ3_XXS>(8, {{{0, 2}}}, {{{2, 96}}});
    case Type::kIQ3_S:  // d, qh, scales; qs, signs
      return PackOfBlocks<tensor::BlockIQ3_S>(8, {{{0, 2}, {66, 8}, {106, 4}}},
                                              {{{2, 64}, {74, 32}}});
    case Type::kQ1_0:  // d; qs
      return PackOfBlocks<tensor::BlockQ1_0>(8, {{{0, 2}}}, {{{2, 16}}});
    case Type::kQ2_0:  // d; qs
      return PackOfBlocks<tensor::BlockQ2_0>(8, {{{0, 2}}}, {{{2, 16}}});
    case Type::kTQ1_0:  // d, qh; qs
      return PackOfBlocks<tensor::BlockTQ1_0>(8, {{{52, 2}, {48, 4}}}, {{{0, 48}}});
    case Type::kTQ2_0:  // d; qs
      return PackOfBlocks<tensor::BlockTQ2_0>(8, {{{64, 2}}}, {{{0, 64, 2}}});
    default:
      return {};
  }
}

// Bytes of a row of any type in device memory: a multiple of 16.
inline uint64_t PlacedRowBytes(tensor::Type type, uint32_t cols) {
  const PackLayout pack = PackOf(type);
  if (pack.blocks > 0) return pack.RowBytes(cols);
  return (tensor::RowBytes(type, cols) + kPackUnit - 1) / kPackUnit * kPackUnit;
}

}  // namespace tandem::kernels::cuda

#endif  // TANDEM_KERNELS_CUDA_DEVICE_PACKS_H_
