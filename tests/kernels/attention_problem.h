// Attention in dense form, as tests think of it: sequences with q, k and v at every position;
// Attend lays any selection of their rows out as pages and block tables, with poison wherever
// nothing may be read, and runs a backend on it.
#ifndef TANDEM_TESTS_KERNELS_ATTENTION_PROBLEM_H_
#define TANDEM_TESTS_KERNELS_ATTENTION_PROBLEM_H_

#include <algorithm>
#include <cmath>
#include <numeric>
#include <vector>

#include "common/tensor/dequantize.h"
#include "kernels/cpu/isa.h"
#include "kernels/host/pages.h"
#include "kernels/reference/page_row.h"
#include "tests/kernels/backends.h"

namespace tandem::kernels {

struct AttentionShape {
  uint32_t heads = 4;  // of this rank
  uint32_t heads_per_kv = 2;
  uint32_t head_dim = 64;
  uint32_t value_dim = 64;
  uint32_t window = 0;
  tensor::Type type = tensor::Type::kF16;
  uint32_t first_head = 0;
  float softcap = 0;
  bool with_sinks = false;
  bool latent = false;  // heads_per_kv covers all heads
  bool chunked = false;
  bool k_columns = false;

  // The first position visible to `position`.
  int32_t FirstVisible(int32_t position) const {
    const auto size = static_cast<int32_t>(window);
    if (size == 0) return 0;
    return chunked ? position - position % size : std::max(0, position - size + 1);
  }
  uint32_t first_kv_head() const { return first_head / heads_per_kv; }
  uint32_t kv_heads() const {
    return (first_head + heads - 1) / heads_per_kv - first_kv_head() + 1;
  }
  float scale() const { return 1.0f / std::sqrt(static_cast<float>(head_dim)); }
  // From next to nothing to more than all scores of a short row together.
  std::vector<float> sinks() const {
    std::vector<float> values;
    for (uint32_t h = 0; with_sinks && h < heads; ++h)
      values.push_back(static_cast<float>((first_head + h) * 5 % 11) - 4.0f);
    return values;
  }

  friend std::ostream& operator<<(std::ostream& out, const AttentionShape& s) {
    return out << s.heads << " heads of " << s.head_dim << " and " << s.value_dim << ", "
               << tensor::Name(s.type) << (s.latent ? " latent" : "")
               << (s.k_columns ? ", K in columns" : "") << (s.chunked ? ", chunk " : ", window ")
               << s.window << ", softcap " << s.softcap << (s.with_sinks ? ", sinks" : "");
  }
};

// Tensor cores and AVX-512's BF16 products take queries and weights rounded to 16 bits, those of
// Q8_0 pages only weights; AVX2's of Q8_0 pages take both as integers of 16 bits.
inline float Tolerance(const BackendCase& backend, const AttentionShape& shape) {
  if (backend.cuda()) {
    if (shape.type == tensor::Type::kF32) return 1e-5f;
    return shape.type == tensor::Type::kBF16 ? 8e-3f : 1e-3f;
  }
  const bool q8_0 = shape.type == tensor::Type::kQ8_0, bf16 = shape.type == tensor::Type::kBF16;
  if (backend.kernels == "reference" || shape.latent || shape.head_dim % 32 != 0 ||
      shape.value_dim % 32 != 0)
    return 3e-6f;
  if (backend.kernels == "avx512") return (q8_0 || bf16) && cpu::HasFastBf16() ? 8e-3f : 3e-6f;
  return q8_0 ? 2e-4f : 3e-6f;
}

// Rows of `dim` values as bytes of a page type.
inline std::vector<std::byte> PageBytes(tensor::Type type, const std::vector<float>& values,
                                        uint32_t dim) {
  const size_t row_bytes = tensor::RowBytes(type, dim);
  std::vector<std::byte> bytes(values.size() / dim * row_bytes);
  for (size_t row = 0; row < values.size() / dim; ++row)
    reference::StorePageRow(type, &values[row * dim], dim, &bytes[row * row_bytes]);
  return bytes;
}

// Rows of K of whole pages as their columns.
inline std::vector<std::byte> InColumns(const KvPages& pages, const std::vector<std::byte>& rows) {
  std::vector<std::byte> columns(rows.size());
  const size_t row_bytes = tensor::RowBytes(pages.type, pages.head_dim);
  for (uint32_t slot = 0; slot < pages.num_blocks * pages.block_size; ++slot) {
    for (uint32_t head = 0; head < pages.kv_heads; ++head) {
      const auto at = static_cast<int32_t>(slot);
      const std::byte* const row = &rows[host::PageOffset(pages, at, head, row_bytes)];
      host::ForKeyPieces(pages, at, head, [&](size_t to, size_t from, size_t bytes) {
        std::copy_n(row + from, bytes, &columns[to]);
      });
    }
  }
  return columns;
}

// K and V hold values that pages of the shape's type hold exactly.
struct DenseSequence {
  std::vector<float> q;  // (length, heads, head_dim)
  std::vector<float> k;  // (length, kv_heads, head_dim)
  std::vector<float> v;  // (length, kv_heads, value_dim)
};

inline DenseSequence MakeSequence(const AttentionShape& s, uint32_t length, uint32_t seed) {
  Random random(seed);
  DenseSequence d;
  d.q = random.Floats(size_t{length} * s.heads * s.head_dim, -3, 3);
  d.k = random.Floats(size_t{length} * s.kv_heads() * s.head_dim);
  tensor::Dequantize(s.type, PageBytes(s.type, d.k, s.head_dim).data(), d.k.data(), d.k.size());
  if (s.latent) {
    for (size_t row = 0; row < length; ++row) {
      const auto begin = d.k.begin() + static_cast<ptrdiff_t>(row * s.head_dim);
      d.v.insert(d.v.end(), begin, begin + s.value_dim);
    }
    return d;
  }
  d.v = random.Floats(size_t{length} * s.kv_heads() * s.value_dim);
  tensor::Dequantize(s.type, PageBytes(s.type, d.v, s.value_dim).data(), d.v.data(), d.v.size());
  return d;
}

// Query rows [begin, end) of a sequence, its context ending with them.
struct QueryRows {
  const DenseSequence* sequence;
  int32_t begin;
  int32_t end;
  bool padding = false;  // context length 0: as many query rows, but nothing cached
};

inline std::vector<float> NaiveAttention(const AttentionShape& s, const QueryRows& rows) {
  const DenseSequence& d = *rows.sequence;
  const size_t kv_heads = s.kv_heads();
  std::vector<float> out;
  if (rows.padding) {
    out.resize(static_cast<size_t>(rows.end - rows.begin) * s.heads * s.value_dim);
    return out;
  }
  for (int32_t pos = rows.begin; pos < rows.end; ++pos) {
    const int32_t first = s.FirstVisible(pos);
    for (uint32_t h = 0; h < s.heads; ++h) {
      const size_t kv = (s.first_head + h) / s.heads_per_kv - s.first_kv_head();
      const float* const q = &d.q[(static_cast<size_t>(pos) * s.heads + h) * s.head_dim];
      std::vector<double> weight;
      for (int32_t i = first; i <= pos; ++i) {
        const float* const k = &d.k[(static_cast<size_t>(i) * kv_heads + kv) * s.head_dim];
        const double score = s.scale() * std::inner_product(q, q + s.head_dim, k, 0.0);
        weight.push_back(s.softcap == 0 ? score : s.softcap * std::tanh(score / s.softcap));
      }
      double largest = *std::max_element(weight.begin(), weight.end());
      double total = 0;
      if (s.with_sinks) {
        const double sink = s.sinks()[h];
        largest = std::max(largest, sink);
        total = std::exp(sink - largest);
      }
      std::vector<double> sum(s.value_dim, 0.0);
      for (size_t i = 0; i < weight.size(); ++i) {
        const double w = std::exp(weight[i] - largest);
        total += w;
        const float* const v =
            &d.v[((static_cast<size_t>(first) + i) * kv_heads + kv) * s.value_dim];
        for (uint32_t c = 0; c < s.value_dim; ++c) sum[c] += w * v[c];
      }
      for (const double x : sum) out.push_back(static_cast<float>(x / total));
    }
  }
  return out;
}

// Pages and tables of a batch on the host.
class PagedBatch {
 public:
  PagedBatch(const AttentionShape& shape, const std::vector<QueryRows>& batch, uint32_t block_size,
             uint32_t seed)
      : shape_(shape), block_size_(static_cast<int32_t>(block_size)) {
    offsets_.push_back(0);
    int32_t blocks = 0;
    for (const QueryRows& rows : batch) {
      const size_t row = size_t{shape.heads} * shape.head_dim;
      const float* const q = rows.sequence->q.data();
      q_.insert(q_.end(), q + static_cast<size_t>(rows.begin) * row,
                q + static_cast<size_t>(rows.end) * row);
      offsets_.push_back(offsets_.back() + rows.end - rows.begin);
      contexts_.push_back(rows.padding ? 0 : rows.end);
      max_query_ = std::max(max_query_, rows.end - rows.begin);
      blocks += (rows.end + block_size_ - 1) / block_size_;
    }
    max_context_ = *std::max_element(contexts_.begin(), contexts_.end());
    stride_ = (max_context_ + block_size_ - 1) / block_size_ + 2;
    num_blocks_ = blocks + 3;
    free_.resize(static_cast<size_t>(num_blocks_));
    std::iota(free_.begin(), free_.end(), 0);
    Random random(seed);
    std::shuffle(free_.begin(), free_.end(), random.engine());
    const size_t page_rows = static_cast<size_t>(num_blocks_) * shape.kv_heads() * block_size;
    k_.assign(page_rows * shape.head_dim, std::nanf(""));
    v_.assign(page_rows * shape.value_dim, std::nanf(""));
    // In any order, with rows between them that no sequence has.
    table_rows_.resize(batch.size() + 2);
    std::iota(table_rows_.begin(), table_rows_.end(), 0);
    std::shuffle(table_rows_.begin(), table_rows_.end(), random.engine());
    tables_.assign(table_rows_.size() * static_cast<size_t>(stride_), -1);
    for (size_t s = 0; s < batch.size(); ++s) {
      if (batch[s].padding) continue;
      FillPages(batch[s],
                &tables_[static_cast<size_t>(table_rows_[s]) * static_cast<size_t>(stride_)]);
    }
  }

  std::vector<float> Run(Rig& rig) const { return Run(rig, shape_.sinks()); }

  std::vector<float> Run(Rig& rig, const std::vector<float>& sinks) const {
    const AttentionParams p = Call(rig, sinks);
    rig.Run([&](Backend& b) { b.Encode(p); });
    return Output(rig, p);
  }

  // The call, with its arrays in the rig's memory.
  AttentionParams Call(Rig& rig, const std::vector<float>& sinks = {}) const {
    AttentionParams p{};
    p.q = rig.Put(q_, 1);
    p.tokens = static_cast<uint32_t>(offsets_.back());
    p.num_seqs = static_cast<uint32_t>(contexts_.size());
    p.query_offsets = rig.Put(offsets_);
    p.context_lens = rig.Put(contexts_);
    p.block_tables = rig.Put(tables_);
    p.table_rows = rig.Put(table_rows_);
    p.table_stride = static_cast<uint32_t>(stride_);
    p.pages = {.type = shape_.type,
               .num_blocks = static_cast<uint32_t>(num_blocks_),
               .block_size = static_cast<uint32_t>(block_size_),
               .kv_heads = shape_.kv_heads(),
               .head_dim = shape_.head_dim,
               .value_dim = shape_.value_dim,
               .latent = shape_.latent,
               .k_columns = shape_.k_columns};
    const auto k = PageBytes(shape_.type, k_, shape_.head_dim);
    p.pages.k = rig.Put(shape_.k_columns ? InColumns(p.pages, k) : k);
    if (!shape_.latent) p.pages.v = rig.Put(PageBytes(shape_.type, v_, shape_.value_dim));
    p.heads = shape_.heads;
    p.first_head = shape_.first_head;
    p.heads_per_kv = shape_.heads_per_kv;
    p.first_kv_head = shape_.first_kv_head();
    p.scale = shape_.scale();
    p.window = shape_.window;
    p.chunked = shape_.chunked;
    p.softcap = shape_.softcap;
    if (!sinks.empty()) p.sinks = rig.Put(sinks);
    p.max_query_len = static_cast<uint32_t>(max_query_);
    p.max_context_len = static_cast<uint32_t>(max_context_);
    const size_t values = size_t{p.tokens} * p.heads * shape_.value_dim;
    p.out = rig.Poisoned(values, 1);
    return p;
  }
  static std::vector<float> Output(Rig& rig, const AttentionParams& p) {
    return rig.Get(p.out, size_t{p.tokens} * p.heads * p.pages.value_dim);
  }

 private:
  void FillPages(const QueryRows& rows, int32_t* table) {
    // Blocks before every row's window are released.
    const int32_t first = shape_.FirstVisible(rows.begin);
    const size_t kv_heads = shape_.kv_heads();
    for (int32_t pos = first; pos < rows.end; ++pos) {
      int32_t& block = table[pos / block_size_];
      if (block < 0) {
        block = free_.back();
        free_.pop_back();
      }
      for (size_t h = 0; h < kv_heads; ++h) {
        const size_t to =
            (static_cast<size_t>(block) * kv_heads + h) * static_cast<size_t>(block_size_) +
            static_cast<size_t>(pos % block_size_);
        const size_t from = static_cast<size_t>(pos) * kv_heads + h;
        std::copy_n(&rows.sequence->k[from * shape_.head_dim], shape_.head_dim,
                    &k_[to * shape_.head_dim]);
        std::copy_n(&rows.sequence->v[from * shape_.value_dim], shape_.value_dim,
                    &v_[to * shape_.value_dim]);
      }
    }
  }

  const AttentionShape shape_;
  const int32_t block_size_;
  int32_t max_query_ = 0, max_context_ = 0, stride_ = 0, num_blocks_ = 0;
  std::vector<float> q_, k_, v_;
  std::vector<int32_t> offsets_, contexts_, tables_, table_rows_, free_;
};

inline std::vector<float> Attend(Rig& rig, const AttentionShape& shape,
                                 const std::vector<QueryRows>& batch, uint32_t block_size = 16,
                                 uint32_t seed = 1) {
  return PagedBatch(shape, batch, block_size, seed).Run(rig);
}

}  // namespace tandem::kernels

#endif  // TANDEM_TESTS_KERNELS_ATTENTION_PROBLEM_H_
