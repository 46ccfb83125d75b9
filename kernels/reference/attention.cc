// softmax(scale * q K^T) V over the positions that a row sees, in two passes.
#include <algorithm>
#include <cmath>

#include "common/tensor/f16.h"
#include "kernels/host/rope.h"
#include "kernels/reference/ops.h"

namespace tandem::kernels::reference {
namespace {

float Load(tensor::Type type, const void* pages, size_t index) {
  return type == tensor::Type::kF32
             ? static_cast<const float*>(pages)[index]
             : tensor::HalfToFloat(static_cast<const uint16_t*>(pages)[index]);
}

// One query row of one sequence, all its heads.
class RowAttention {
 public:
  RowAttention(const AttentionParams& p, uint32_t seq, uint32_t row, std::byte* scratch)
      : p_(p),
        table_(p.block_tables + static_cast<size_t>(seq) * p.table_stride),
        row_(row),
        scores_(reinterpret_cast<double*>(scratch)),
        sums_(scores_ + p.max_context_len) {
    const int32_t rows_after = p.query_offsets[seq + 1] - 1 - static_cast<int32_t>(row);
    end_ = p.context_lens[seq] - rows_after;
    const int64_t first = p.window == 0 ? 0 : int64_t{end_} - p.window;
    begin_ = static_cast<int32_t>(std::max<int64_t>(first, 0));
  }

  void Head(uint32_t head) {
    const uint32_t kv_head = (p_.first_head + head) / p_.heads_per_kv - p_.first_kv_head;
    const size_t at = static_cast<size_t>(row_) * p_.heads + head;
    Score(p_.q + at * p_.pages.head_dim, kv_head);
    Mix(p_.out + at * p_.pages.value_dim, kv_head);
  }

 private:
  size_t Offset(int32_t position, uint32_t kv_head, uint32_t dim) const {
    const auto size = static_cast<int32_t>(p_.pages.block_size);
    const int32_t slot = table_[position / size] * size + position % size;
    return host::PageOffset(p_.pages, slot, kv_head, dim);
  }

  void Score(const float* q, uint32_t kv_head) {
    const KvPages& pages = p_.pages;
    for (int32_t pos = begin_; pos < end_; ++pos) {
      const size_t k = Offset(pos, kv_head, pages.head_dim);
      double dot = 0;
      for (uint32_t d = 0; d < pages.head_dim; ++d)
        dot += double{q[d]} * Load(pages.type, pages.k, k + d);
      scores_[pos - begin_] = dot * p_.scale;
    }
  }

  void Mix(float* out, uint32_t kv_head) {
    const KvPages& pages = p_.pages;
    const double largest = *std::max_element(scores_, scores_ + (end_ - begin_));
    std::fill_n(sums_, pages.value_dim, 0.0);
    double total = 0;
    for (int32_t pos = begin_; pos < end_; ++pos) {
      const double weight = std::exp(scores_[pos - begin_] - largest);
      const size_t v = Offset(pos, kv_head, pages.value_dim);
      total += weight;
      for (uint32_t d = 0; d < pages.value_dim; ++d)
        sums_[d] += weight * Load(pages.type, pages.v, v + d);
    }
    for (uint32_t d = 0; d < pages.value_dim; ++d) out[d] = static_cast<float>(sums_[d] / total);
  }

  const AttentionParams& p_;
  const int32_t* const table_;
  const uint32_t row_;
  int32_t begin_;  // positions that the row sees
  int32_t end_;
  double* const scores_;  // (max_context_len)
  double* const sums_;    // (value_dim)
};

void AttendRow(const AttentionParams& p, const host::TaskContext& context) {
  const uint32_t row = context.task;
  const int32_t* const offsets = p.query_offsets;
  // The last sequence that begins at or before the row; empty sequences own none.
  const int32_t* const next =
      std::upper_bound(offsets, offsets + p.num_seqs + 1, static_cast<int32_t>(row));
  if (next == offsets || next == offsets + p.num_seqs + 1) return;
  RowAttention attention(p, static_cast<uint32_t>(next - offsets - 1), row, context.thread_scratch);
  for (uint32_t head = 0; head < p.heads; ++head) attention.Head(head);
}

}  // namespace

void EncodeAttention(host::OpList& list, const AttentionParams& params) {
  list.ReserveScratch(0,
                      (size_t{params.max_context_len} + params.pages.value_dim) * sizeof(double));
  list.Add("attention", params.tokens, &AttendRow, params);
}

}  // namespace tandem::kernels::reference
