// softmax(scale * q K^T) V over the positions visible to a row, in two passes.
#include <algorithm>
#include <cmath>
#include <cstring>

#include "common/tensor/dequantize.h"
#include "kernels/host/pages.h"
#include "kernels/reference/ops.h"

namespace tandem::kernels::reference {
namespace {

int32_t FirstVisible(const AttentionParams& p, int32_t position) {
  if (p.window == 0 || position < 0) return 0;
  const int64_t window = p.window;
  if (p.chunked) return static_cast<int32_t>(position / window * window);
  return static_cast<int32_t>(std::max<int64_t>(position + 1 - window, 0));
}

uint32_t MostDim(const KvPages& pages) { return std::max(pages.head_dim, pages.value_dim); }

// One query row of one sequence, all its heads.
class RowAttention {
 public:
  RowAttention(const AttentionParams& p, uint32_t seq, uint32_t row, std::byte* scratch)
      : p_(p),
        table_(p.block_tables + static_cast<size_t>(p.table_rows[seq]) * p.table_stride),
        row_(row),
        scores_(reinterpret_cast<double*>(scratch)),
        sums_(scores_ + p.max_context_len),
        values_(reinterpret_cast<float*>(sums_ + p.pages.value_dim)),
        key_row_(reinterpret_cast<std::byte*>(values_ + MostDim(p.pages))) {
    const int32_t rows_after = p.query_offsets[seq + 1] - 1 - static_cast<int32_t>(row);
    end_ = p.context_lens[seq] - rows_after;
    begin_ = FirstVisible(p, end_ - 1);
  }

  void Head(uint32_t head) {
    if (end_ <= begin_) return Clear(head);  // padding
    const uint32_t kv_head = (p_.first_head + head) / p_.heads_per_kv - p_.first_kv_head;
    const size_t at = static_cast<size_t>(row_) * p_.heads + head;
    Score(p_.q + at * p_.pages.head_dim, kv_head);
    Mix(p_.out + at * p_.pages.value_dim, kv_head, head);
  }

 private:
  void Clear(uint32_t head) {
    const size_t at = static_cast<size_t>(row_) * p_.heads + head;
    std::fill_n(p_.out + at * p_.pages.value_dim, p_.pages.value_dim, 0.0f);
  }

  int32_t SlotOf(int32_t position) const {
    const auto size = static_cast<int32_t>(p_.pages.block_size);
    return table_[position / size] * size + position % size;
  }
  // The K or V row of a position, as floats.
  void LoadRow(const void* pages, uint32_t dim, int32_t position, uint32_t kv_head) {
    const size_t row_bytes = tensor::RowBytes(p_.pages.type, dim);
    const size_t offset = host::PageOffset(p_.pages, SlotOf(position), kv_head, row_bytes);
    tensor::Dequantize(p_.pages.type, static_cast<const std::byte*>(pages) + offset, values_, dim);
  }
  void LoadKey(int32_t position, uint32_t kv_head) {
    const KvPages& pages = p_.pages;
    if (!pages.k_columns) return LoadRow(pages.k, pages.head_dim, position, kv_head);
    const auto* const k = static_cast<const std::byte*>(pages.k);
    host::ForKeyPieces(pages, SlotOf(position), kv_head,
                       [=, this](size_t from, size_t to, size_t bytes) {
                         std::memcpy(key_row_ + to, k + from, bytes);
                       });
    tensor::Dequantize(pages.type, key_row_, values_, pages.head_dim);
  }

  void Score(const float* q, uint32_t kv_head) {
    const uint32_t dim = p_.pages.head_dim;
    for (int32_t pos = begin_; pos < end_; ++pos) {
      LoadKey(pos, kv_head);
      double dot = 0;
      for (uint32_t d = 0; d < dim; ++d) dot += double{q[d]} * values_[d];
      const double score = dot * p_.scale;
      scores_[pos - begin_] = p_.softcap == 0 ? score : p_.softcap * std::tanh(score / p_.softcap);
    }
  }

  void Mix(float* out, uint32_t kv_head, uint32_t head) {
    const KvPages& pages = p_.pages;
    const void* const rows = pages.latent ? pages.k : pages.v;
    const uint32_t row_dim = pages.latent ? pages.head_dim : pages.value_dim;
    double largest = *std::max_element(scores_, scores_ + (end_ - begin_));
    double total = 0;
    if (p_.sinks != nullptr) {
      largest = std::max(largest, double{p_.sinks[head]});
      total = std::exp(p_.sinks[head] - largest);
    }
    std::fill_n(sums_, pages.value_dim, 0.0);
    for (int32_t pos = begin_; pos < end_; ++pos) {
      const double weight = std::exp(scores_[pos - begin_] - largest);
      LoadRow(rows, row_dim, pos, kv_head);
      total += weight;
      for (uint32_t d = 0; d < pages.value_dim; ++d) sums_[d] += weight * values_[d];
    }
    for (uint32_t d = 0; d < pages.value_dim; ++d) out[d] = static_cast<float>(sums_[d] / total);
  }

  const AttentionParams& p_;
  const int32_t* const table_;
  const uint32_t row_;
  int32_t begin_;  // positions visible to the row
  int32_t end_;
  double* const scores_;      // (max_context_len)
  double* const sums_;        // (value_dim)
  float* const values_;       // one row of K or V
  std::byte* const key_row_;  // one row of K as it would lie in rows
};

void AttendRow(const AttentionParams& p, const host::TaskContext& context) {
  const uint32_t row = context.task;
  const int32_t* const offsets = p.query_offsets;
  // The last sequence that begins at or before the row; empty sequences have no rows.
  const int32_t* const next =
      std::upper_bound(offsets, offsets + p.num_seqs + 1, static_cast<int32_t>(row));
  if (next == offsets || next == offsets + p.num_seqs + 1) return;
  RowAttention attention(p, static_cast<uint32_t>(next - offsets - 1), row, context.thread_scratch);
  for (uint32_t head = 0; head < p.heads; ++head) attention.Head(head);
}

}  // namespace

void EncodeOp(host::OpList& list, const AttentionParams& params) {
  const KvPages& pages = params.pages;
  list.ReserveScratch(0, (size_t{params.max_context_len} + pages.value_dim) * sizeof(double) +
                             2 * MostDim(pages) * sizeof(float));
  list.Add("attention", params.tokens, &AttendRow, params);
}

}  // namespace tandem::kernels::reference
