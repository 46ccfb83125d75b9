#include "worker/layers/vocabulary.h"

#include <algorithm>
#include <utility>

#include "common/base/check.h"

namespace tandem::worker {

void VocabParallelEmbedding::Encode(LayerContext& context, const int32_t* ids, uint32_t tokens,
                                    float* out) const {
  context.backend.Encode(kernels::EmbedParams{.ids = ids,
                                              .tokens = tokens,
                                              .table = table_,
                                              .vocab_begin = vocab_begin_,
                                              .scale = scale_,
                                              .out = out});
  if (context.ranks() > 1) {
    context.comm->AllReduceSum(out, static_cast<size_t>(tokens) * table_.cols);
  }
}

VocabParallelHead::VocabParallelHead(kernels::Weight head, std::vector<uint32_t> starts)
    : head_(head), starts_(std::move(starts)) {
  TANDEM_CHECK(starts_.size() >= 2);
  for (size_t rank = 0; rank + 1 < starts_.size(); ++rank) {
    slice_max_ = std::max(slice_max_, starts_[rank + 1] - starts_[rank]);
  }
}

float* VocabParallelHead::Encode(LayerContext& context, const NormedRows& x, uint32_t rows,
                                 int rank) const {
  const uint32_t ranks = static_cast<uint32_t>(starts_.size() - 1);
  const size_t slice_floats = static_cast<size_t>(rows) * slice_max_;
  const bool root = rank == 0;
  // The root's slice is the first: it is written where it belongs.
  float* const y = context.arena.Take<float>(root ? size_t{rows} * vocab_size() : slice_floats);
  kernels::MatMulParams params{};
  params.x = x.x;
  params.tokens = rows;
  params.x_stride = head_.col_count;
  params.num_projections = 1;
  params.projections[0] = {
      .weight = head_, .bias = nullptr, .y = y, .y_stride = root ? vocab_size() : slice_max_};
  context.backend.Encode(kernels::NormMatMulParams{.norm = x.norm, .product = params});
  if (ranks == 1) return y;

  // The first slice of what is gathered stays empty.
  float* const gathered = root ? context.arena.Take<float>(slice_floats * ranks) : nullptr;
  if (context.comm != nullptr) {
    context.comm->Gather(root ? nullptr : y, slice_floats * sizeof(float), gathered, /*root=*/0);
  }
  if (!root) return nullptr;
  context.backend.Encode(kernels::UnshardLogitsParams{.gathered = gathered + slice_floats,
                                                      .starts = starts_.data() + 1,
                                                      .ranks = ranks - 1,
                                                      .rows = rows,
                                                      .slice_max = slice_max_,
                                                      .out = y});
  return y;
}

}  // namespace tandem::worker
