#include "common/model/weights.h"

#include <algorithm>

namespace tandem::model {

void WeightSlice::Gather(std::byte* to) const {
  const std::vector<Run> all_rows = {{0, rows}}, all_cols = {{0, cols}};
  for (uint64_t matrix = 0; matrix < count; ++matrix) {
    const std::byte* const first = data + matrix * matrix_stride_bytes;
    for (const Run& run : scattered() ? row_runs : all_rows) {
      for (uint64_t row = run.begin; row < run.end; ++row) {
        for (const Run& part : scattered() ? col_runs : all_cols) {
          const std::byte* const from =
              first + row * row_stride_bytes + tensor::RowBytes(type, part.begin);
          to = std::copy_n(from, tensor::RowBytes(type, part.end - part.begin), to);
        }
      }
    }
  }
}

}  // namespace tandem::model
