#include "kernels/cpu/weight_store.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "common/base/status.h"
#include "common/tensor/type.h"
#include "kernels/host/memory.h"
#include "kernels/host/panels.h"
#include "kernels/host/window.h"

namespace tandem::kernels::cpu {
namespace {

// Units (panels or rows) of one matrix.
struct CopyTask {
  Weight from;  // its `data` is the matrix
  std::byte* to;
  uint32_t panel_rows;     // 0: rows
  uint64_t row_bytes;      // of the copy
  uint32_t begin, end;     // rows
  uint32_t rows_per_task;  // whole panels
};

void RunCopy(const CopyTask& copy, const host::TaskContext& context) {
  const uint32_t begin = copy.begin + context.task * copy.rows_per_task;
  const uint32_t end = std::min(begin + copy.rows_per_task, copy.end);
  const uint32_t step = std::max(copy.panel_rows, 1u);
  for (uint32_t row = begin; row < end; row += step) {
    std::byte* const to = copy.to + row * copy.row_bytes;
    if (copy.panel_rows > 0) {
      host::PackPanel(copy.from, row, copy.panel_rows, to);
    } else {
      std::memcpy(to,
                  static_cast<const std::byte*>(copy.from.data) + row * copy.from.row_stride_bytes,
                  copy.row_bytes);
    }
  }
}

}  // namespace

absl::StatusOr<std::byte*> WeightStore::Take(size_t bytes) {
  bytes = (bytes + 63) / 64 * 64;
  if (regions_.empty() || bytes > regions_.back().bytes() - used_) {
    TANDEM_ASSIGN_OR_RETURN(Buffer region, host::AllocatePages(std::max(bytes, sizes_.region)));
    regions_.push_back(std::move(region));
    used_ = 0;
  }
  return regions_.back().data() + std::exchange(used_, used_ + bytes);
}

absl::StatusOr<Weight> WeightStore::Place(const Weight& host, const RunList& run,
                                          const Copied& copied) {
  const uint32_t lanes = host.use == WeightUse::kHeads ? 0 : panel_rows_;
  Weight placed = host;
  placed.panel_rows = lanes;
  placed.row_stride_bytes = lanes > 0 ? host::PanelRowBytes(host.type, host::WindowOf(host).cols())
                                      : tensor::RowBytes(host.type, host.cols);
  const uint32_t step = std::max(lanes, 1u);
  const uint32_t rows = (host.rows + step - 1) / step * step;
  placed.matrix_stride_bytes = rows * placed.row_stride_bytes;
  TANDEM_ASSIGN_OR_RETURN(std::byte* const to, Take(host.count * placed.matrix_stride_bytes));
  placed.data = to;

  const uint64_t row_bytes =
      std::max<uint64_t>({placed.row_stride_bytes, host.row_stride_bytes, 1});
  const auto whole = [&](uint64_t bytes) {
    return static_cast<uint32_t>(
               std::clamp<uint64_t>(bytes / row_bytes / step, 1, std::max(host.rows, 1u))) *
           step;
  };
  for (uint32_t matrix = 0; matrix < host.count && host.rows > 0; ++matrix) {
    CopyTask copy = {host,
                     to + matrix * placed.matrix_stride_bytes,
                     lanes,
                     placed.row_stride_bytes,
                     0,
                     0,
                     whole(sizes_.task)};
    copy.from.data = static_cast<const std::byte*>(host.data) + matrix * host.matrix_stride_bytes;
    for (; copy.begin < host.rows; copy.begin = copy.end) {
      copy.end = std::min(copy.begin + whole(sizes_.run), host.rows);
      list_.Clear(EncodeMode::kRun);
      const uint32_t in_run = copy.end - copy.begin;
      list_.Add("copy_weight", (in_run + copy.rows_per_task - 1) / copy.rows_per_task, &RunCopy,
                copy);
      TANDEM_RETURN_IF_ERROR(run(list_));
      if (copied == nullptr) continue;
      copied({static_cast<const std::byte*>(copy.from.data) + copy.begin * host.row_stride_bytes,
              (in_run - 1) * host.row_stride_bytes + tensor::RowBytes(host.type, host.cols)});
    }
  }
  return placed;
}

}  // namespace tandem::kernels::cpu
