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
  float* slice = context.arena.Take<float>(static_cast<size_t>(rows) * slice_max_);
  kernels::MatMulParams params{};
  params.x = x.x;
  params.tokens = rows;
  params.x_stride = head_.col_count;
  params.num_projections = 1;
  params.projections[0] = {.weight = head_, .bias = nullptr, .y = slice, .y_stride = slice_max_};
  context.backend.Encode(kernels::NormMatMulParams{.norm = x.norm, .product = params});
  if (ranks == 1) return slice;

  const bool root = rank == 0;
  const size_t slice_floats = static_cast<size_t>(rows) * slice_max_;
  float* gathered = root ? context.arena.Take<float>(slice_floats * ranks) : nullptr;
  if (context.comm != nullptr) {
    context.comm->Gather(slice, slice_floats * sizeof(float), gathered, /*root=*/0);
  }
  if (!root) return nullptr;
  float* logits = context.arena.Take<float>(static_cast<size_t>(rows) * vocab_size());
  context.backend.Encode(kernels::UnshardLogitsParams{.gathered = gathered,
                                                      .starts = starts_.data(),
                                                      .ranks = ranks,
                                                      .rows = rows,
                                                      .slice_max = slice_max_,
                                                      .out = logits});
  return logits;
}

}  // namespace tandem::worker
