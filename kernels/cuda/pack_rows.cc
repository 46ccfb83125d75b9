#include "kernels/cuda/pack_rows.h"

#include <algorithm>
#include <cstring>
#include <tuple>
#include <utility>

#include "kernels/cuda/device/blocks_dispatch.h"
#include "kernels/cuda/device/packs.h"

namespace tandem::kernels::cuda {
namespace {

// The bits of one group of 32 codes, number kIndex of those that share the 32 bytes at `shared`, as
// the words that AddBits (device/blocks_of_256.h) reads; two of them at a time.
template <uint32_t kBits, uint32_t kIndex>
void RegroupBits(const std::byte* shared, std::byte* to) {
  constexpr uint64_t kMask = ((1u << kBits) - 1) * 0x0101010101010101u;
  constexpr uint32_t kPairs = (kBits + 1) / 2, kApart = kBits > 1 ? kBits : 2;
  uint64_t codes[4], words[kPairs] = {};
  std::memcpy(codes, shared, sizeof(codes));
  for (uint32_t i = 0; i < 4; ++i) {
    words[i % kPairs] |= (codes[i] >> kBits * kIndex & kMask) << i / kPairs * kApart;
  }
  // A single word has what the pair has, by turns.
  if constexpr (kBits == 1) words[0] |= words[0] >> 32 << 1;
  std::memcpy(to, words, 4 * kBits);
}

template <uint32_t kBits, uint32_t kStep, uint32_t... kGroups>
void RegroupBlock(const std::byte* from, std::byte* to,
                  std::integer_sequence<uint32_t, kGroups...>) {
  // kShare * kStep groups have kStep runs of 32 bytes.
  constexpr uint32_t kShare = 8 / kBits;
  (RegroupBits<kBits, kGroups / kStep % kShare>(
       from + 32 * (kGroups / (kShare * kStep) * kStep + kGroups % kStep),
       to + 4 * kBits * kGroups),
   ...);
}

// Copies field kField of a block. All sizes are constants: this is a few loads and stores.
template <tensor::Type kType, size_t kField>
void CopyField(const std::byte* block, uint32_t index, std::byte* head, std::byte* body) {
  constexpr PackLayout kPack = PackOf(kType);
  constexpr BlockField kOfHead = kPack.head[kField], kOfBody = kPack.body[kField];
  std::memcpy(head + kOfHead.at + index * kOfHead.bytes, block + kOfHead.begin, kOfHead.bytes);
  if constexpr (kOfBody.bits > 0) {
    RegroupBlock<kOfBody.bits, kOfBody.step>(block + kOfBody.begin, body + kOfBody.at,
                                             std::make_integer_sequence<uint32_t, 8>());
  } else {
    std::memcpy(body + kOfBody.at, block + kOfBody.begin, kOfBody.bytes);
  }
}

template <tensor::Type kType>
void PackBlocksOf(const std::byte* from, uint64_t blocks, [[maybe_unused]] float scale,
                  std::byte* to) {
  constexpr PackLayout kPack = PackOf(kType);
  for (uint64_t left = blocks; left > 0;) {
    const auto in_pack = static_cast<uint32_t>(std::min<uint64_t>(left, kPack.blocks));
    std::byte* const head = std::exchange(to, to + kPack.head_bytes);
    std::memset(head, 0, kPack.head_bytes);
    if constexpr (kPack.scale_at != 0) std::memcpy(head + kPack.scale_at, &scale, sizeof(scale));
    for (uint32_t i = 0; i < in_pack; ++i) {
      [&]<size_t... kFields>(std::index_sequence<kFields...>) {
        (CopyField<kType, kFields>(from, i, head, to), ...);
      }
      (std::make_index_sequence<std::tuple_size_v<BlockFields>>());
      from += kPack.block_bytes;
      to += kPack.body_bytes;
    }
    left -= in_pack;
  }
}

}  // namespace

RowPacker::RowPacker(tensor::Type type, uint32_t cols)
    : row_bytes_(PlacedRowBytes(type, cols)), file_bytes_(tensor::RowBytes(type, cols)) {
  DispatchBlockType(type, [this](auto of) {
    constexpr PackLayout kPack = PackOf(of());
    static_assert(kPack.bytes() <= kMaxPackBytes);
    pack_blocks_ = &PackBlocksOf<of()>;
    pack_bytes_ = kPack.bytes();
    block_file_bytes_ = kPack.block_bytes;
    pack_file_bytes_ = kPack.blocks * kPack.block_bytes;
    has_scale_ = kPack.scale_at != 0;
  });
}

size_t RowPacker::Write(const std::byte* row, uint64_t at, std::byte* to, size_t room,
                        float scale) const {
  const uint64_t left = row_bytes_ - at;
  const uint64_t bytes = left <= room ? left : room / pack_bytes_ * pack_bytes_;
  const uint64_t begin = std::min(at / pack_bytes_ * pack_file_bytes_, file_bytes_);
  const uint64_t end = bytes == left
                           ? file_bytes_
                           : std::min((at + bytes) / pack_bytes_ * pack_file_bytes_, file_bytes_);
  if (pack_blocks_ != nullptr) {
    pack_blocks_(row + begin, (end - begin) / block_file_bytes_, scale, to);
  } else {
    std::memcpy(to, row + begin, end - begin);
    std::memset(to + (end - begin), 0, bytes - (end - begin));
  }
  return bytes;
}

}  // namespace tandem::kernels::cuda
