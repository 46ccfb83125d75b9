// Ops that only copy rows: GatherRows and UnshardLogits. Shared by all backends on the host.
#include <cstring>

#include "kernels/host/ops.h"

namespace tandem::kernels::host {
namespace {

void GatherRow(const GatherRowsParams& p, const TaskContext& context) {
  const size_t row = context.task;
  std::memcpy(p.out + row * p.dim, p.src + static_cast<size_t>(p.rows[row]) * p.dim,
              p.dim * sizeof(float));
}

// One rank's slice of every row.
struct SliceTask {
  const float* slice;  // (rows, slice_max)
  size_t slice_max;
  float* out;  // column `start` of (rows, vocab)
  size_t vocab;
  size_t count;
};

void CopySliceRow(const SliceTask& task, const TaskContext& context) {
  const size_t row = context.task;
  std::memcpy(task.out + row * task.vocab, task.slice + row * task.slice_max,
              task.count * sizeof(float));
}

}  // namespace

void EncodeOp(OpList& list, const GatherRowsParams& params) {
  list.Add("gather_rows", params.count, &GatherRow, params);
}

void EncodeOp(OpList& list, const UnshardLogitsParams& params) {
  const size_t vocab = params.starts[params.ranks];
  for (size_t rank = 0; rank < params.ranks; ++rank) {
    const uint32_t start = params.starts[rank];
    const uint32_t count = params.starts[rank + 1] - start;
    if (count == 0) continue;
    const float* slice = params.gathered + rank * params.rows * params.slice_max;
    list.Add("unshard_logits", params.rows, &CopySliceRow,
             SliceTask{slice, params.slice_max, params.out + start, vocab, count});
  }
}

}  // namespace tandem::kernels::host
