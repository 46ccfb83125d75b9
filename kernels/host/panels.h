// Panels: the rows of a weight interleaved so that SIMD kernels, which compute with a row per lane,
// read memory in one stream and need not transpose.
//
// A panel holds Weight::panel_rows rows (lanes), of the columns of WindowOf(weight). It has the
// bytes of the rows: word i (four bytes) of every row, then word i + 1 of every row, and so on. If
// a block's size is not a multiple of a word, its odd bytes (the scale at its begin or end) are
// stored apart, so that words stay aligned: of each kGroupBlocks blocks (fewer at the end), the odd
// bytes of block 0 of every row, of block 1, ..., then the words of block 0, of block 1, ... A
// plain row is padded with zeros to kPlainColumns. Lanes past the last row are zero.
#ifndef TANDEM_KERNELS_HOST_PANELS_H_
#define TANDEM_KERNELS_HOST_PANELS_H_

#include <cstddef>
#include <cstdint>

#include "common/tensor/type.h"
#include "kernels/ops.h"

namespace tandem::kernels::host {

inline constexpr uint32_t kWordBytes = 4;
inline constexpr uint32_t kGroupBlocks = 4;
inline constexpr uint32_t kPlainColumns = 8;

// A row's share of a panel, Weight::row_stride_bytes: panel i begins i * panel_rows of it after the
// first. With 8 or 16 lanes panels are multiples of 64 bytes.
uint64_t PanelRowBytes(tensor::Type type, uint32_t cols);

// Copies rows [first, first + lanes) of a weight in rows to a panel of zeros at `panel`.
void PackPanel(const Weight& rows, uint32_t first, uint32_t lanes, std::byte* panel);

// Copies row `row` of a weight's first matrix, in panels, to `out`: the bytes that it has in the
// file, of the columns of WindowOf(weight).
void ReadPanelRow(const Weight& weight, uint32_t row, std::byte* out);

}  // namespace tandem::kernels::host

#endif  // TANDEM_KERNELS_HOST_PANELS_H_
