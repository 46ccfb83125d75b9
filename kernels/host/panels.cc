#include "kernels/host/panels.h"

#include <algorithm>
#include <cstring>

#include "kernels/host/window.h"

namespace tandem::kernels::host {
namespace {

// Where a block's odd bytes begin: after everything else in some types, else first.
uint32_t OddAt(const tensor::TypeTraits& traits) {
  using tensor::Type;
  const bool last = traits.type == Type::kQ3_K || traits.type == Type::kQ6_K ||
                    traits.type == Type::kTQ1_0 || traits.type == Type::kTQ2_0;
  return last ? traits.block_bytes / kWordBytes * kWordBytes : 0;
}

// `count` units of a row, which begin at `row_at` there and at `panel_at` in lane 0 of the panel;
// in the panel units are `lanes` times their size apart.
struct Piece {
  size_t row_at;
  size_t panel_at;
  uint32_t unit_bytes;
  uint32_t count;
};

// Calls `use` with all pieces of a row of whole words.
template <class Use>
void ForEachPiece(const tensor::TypeTraits& traits, uint32_t blocks, uint32_t lanes, Use use) {
  const uint32_t bytes = traits.block_bytes;
  const uint32_t odd = bytes % kWordBytes;
  if (traits.block_values == 1 || odd == 0) {
    return use(Piece{0, 0, kWordBytes, blocks * bytes / kWordBytes});
  }
  const uint32_t odd_at = OddAt(traits);
  const uint32_t words_at = odd_at == 0 ? odd : 0;
  for (uint32_t first = 0; first < blocks; first += kGroupBlocks) {
    const uint32_t in_group = std::min(kGroupBlocks, blocks - first);
    const size_t group = size_t{first} * bytes * lanes;
    for (uint32_t i = 0; i < in_group; ++i) {
      const size_t row_at = size_t{first + i} * bytes;
      use(Piece{row_at + odd_at, group + size_t{i} * odd * lanes, odd, 1});
      use(Piece{row_at + words_at,
                group + (size_t{in_group} * odd + size_t{i} * (bytes - odd)) * lanes, kWordBytes,
                bytes / kWordBytes});
    }
  }
}

// Plain rows may end inside a word.
size_t BytesPastWords(const tensor::TypeTraits& traits, uint32_t cols) {
  return traits.block_values == 1 ? size_t{cols} * traits.block_bytes % kWordBytes : 0;
}

template <uint32_t kUnit>
void PackPiece(const Piece& piece, const std::byte* const* rows, uint32_t lanes, std::byte* panel) {
  std::byte* to = panel + piece.panel_at;
  for (uint32_t i = 0; i < piece.count; ++i) {
    const size_t at = piece.row_at + size_t{i} * kUnit;
    for (uint32_t lane = 0; lane < lanes; ++lane, to += kUnit) {
      if (rows[lane] != nullptr) std::memcpy(to, rows[lane] + at, kUnit);
    }
  }
}

template <uint32_t kUnit>
void ReadPiece(const Piece& piece, const std::byte* panel, uint32_t lane, uint32_t lanes,
               std::byte* row) {
  const std::byte* from = panel + piece.panel_at + size_t{lane} * kUnit;
  std::byte* to = row + piece.row_at;
  for (uint32_t i = 0; i < piece.count; ++i, from += lanes * kUnit, to += kUnit) {
    std::memcpy(to, from, kUnit);
  }
}

}  // namespace

uint64_t PanelRowBytes(tensor::Type type, uint32_t cols) {
  const uint32_t align = tensor::Traits(type).block_values == 1 ? kPlainColumns : 1;
  const uint64_t bytes = tensor::RowBytes(type, (uint64_t{cols} + align - 1) / align * align);
  return (bytes + 7) / 8 * 8;
}

void PackPanel(const Weight& rows, uint32_t first, uint32_t lanes, std::byte* panel) {
  constexpr uint32_t kMostLanes = 16;
  const tensor::TypeTraits& traits = tensor::Traits(rows.type);
  const Window window = WindowOf(rows);
  const std::byte* row[kMostLanes] = {};
  for (uint32_t lane = 0; lane < lanes && first + lane < rows.rows; ++lane) {
    row[lane] = static_cast<const std::byte*>(rows.data) + (first + lane) * rows.row_stride_bytes +
                tensor::RowBytes(rows.type, window.begin);
  }
  ForEachPiece(traits, window.cols() / traits.block_values, lanes, [&](const Piece& piece) {
    switch (piece.unit_bytes) {
      case 1:
        return PackPiece<1>(piece, row, lanes, panel);
      case 2:
        return PackPiece<2>(piece, row, lanes, panel);
      default:
        return PackPiece<kWordBytes>(piece, row, lanes, panel);
    }
  });
  const size_t past = BytesPastWords(traits, window.cols());
  const size_t words = tensor::RowBytes(rows.type, window.cols()) - past;
  for (uint32_t lane = 0; lane < lanes && past > 0; ++lane) {
    if (row[lane] == nullptr) break;
    std::memcpy(panel + words * lanes + size_t{lane} * kWordBytes, row[lane] + words, past);
  }
}

void ReadPanelRow(const Weight& weight, uint32_t row, std::byte* out) {
  const tensor::TypeTraits& traits = tensor::Traits(weight.type);
  const uint32_t lanes = weight.panel_rows;
  const uint32_t lane = row % lanes;
  const uint32_t cols = WindowOf(weight).cols();
  const auto* panel =
      static_cast<const std::byte*>(weight.data) + (row - lane) * weight.row_stride_bytes;
  ForEachPiece(traits, cols / traits.block_values, lanes, [&](const Piece& piece) {
    switch (piece.unit_bytes) {
      case 1:
        return ReadPiece<1>(piece, panel, lane, lanes, out);
      case 2:
        return ReadPiece<2>(piece, panel, lane, lanes, out);
      default:
        return ReadPiece<kWordBytes>(piece, panel, lane, lanes, out);
    }
  });
  const size_t past = BytesPastWords(traits, cols);
  const size_t words = tensor::RowBytes(weight.type, cols) - past;
  std::memcpy(out + words, panel + words * lanes + size_t{lane} * kWordBytes, past);
}

}  // namespace tandem::kernels::host
