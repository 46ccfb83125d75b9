// Panels: every row can be read back, of every type, from any window of columns.
#include "kernels/host/panels.h"

#include <gtest/gtest.h>

#include <cstring>
#include <random>
#include <vector>

#include "kernels/host/window.h"

namespace tandem::kernels::host {
namespace {

struct Source {
  std::vector<std::byte> bytes;
  Weight weight;
};

Source MakeSource(tensor::Type type, uint32_t rows, uint32_t cols) {
  std::mt19937 random(cols + rows);
  const uint64_t stride = tensor::RowBytes(type, cols) + 6;
  Source source = {std::vector<std::byte>(rows * stride), {}};
  for (std::byte& byte : source.bytes) byte = static_cast<std::byte>(random());
  source.weight = {type, source.bytes.data(), rows, cols, stride, 0, cols};
  return source;
}

void ExpectRowsBack(const Weight& rows, uint32_t lanes) {
  const Window window = WindowOf(rows);
  const uint64_t row_bytes = tensor::RowBytes(rows.type, window.cols());
  Weight panels = rows;
  panels.panel_rows = lanes;
  panels.row_stride_bytes = PanelRowBytes(rows.type, window.cols());
  ASSERT_EQ(panels.row_stride_bytes * lanes % 64, 0u);
  ASSERT_GE(panels.row_stride_bytes, row_bytes);
  const uint32_t all_rows = (rows.rows + lanes - 1) / lanes * lanes;
  std::vector<std::byte> memory(all_rows * panels.row_stride_bytes);
  for (uint32_t row = 0; row < rows.rows; row += lanes) {
    PackPanel(rows, row, lanes, memory.data() + row * panels.row_stride_bytes);
  }
  panels.data = memory.data();
  std::vector<std::byte> back(row_bytes);
  for (uint32_t row = 0; row < rows.rows; ++row) {
    ReadPanelRow(panels, row, back.data());
    const std::byte* const expected = static_cast<const std::byte*>(rows.data) +
                                      row * rows.row_stride_bytes +
                                      tensor::RowBytes(rows.type, window.begin);
    ASSERT_EQ(std::memcmp(back.data(), expected, row_bytes), 0) << "row " << row;
  }
}

TEST(PanelsTest, EveryRowOfEveryTypeCanBeReadBack) {
  for (uint32_t number = 0; number < 64; ++number) {
    const auto traits = tensor::FindTypeTraits(number);
    if (!traits.has_value() || !traits->supported) continue;
    SCOPED_TRACE(traits->name);
    for (const uint32_t blocks : {1u, 3u, 4u, 5u, 9u}) {
      // Plain rows of odd lengths end inside a word.
      const uint32_t cols = blocks * traits->block_values;
      for (const uint32_t lanes : {8u, 16u}) {
        for (const uint32_t rows : {1u, 16u, 21u}) {
          ExpectRowsBack(MakeSource(traits->type, rows, cols).weight, lanes);
        }
      }
    }
  }
}

TEST(PanelsTest, OnlyTheBlocksOfTheWindowAreStored) {
  Source source = MakeSource(tensor::Type::kQ8_0, 19, 320);
  source.weight.col_begin = 40;
  source.weight.col_count = 100;
  EXPECT_EQ(PanelRowBytes(tensor::Type::kQ8_0, WindowOf(source.weight).cols()), 4 * 34u);
  ExpectRowsBack(source.weight, 16);
}

}  // namespace
}  // namespace tandem::kernels::host
