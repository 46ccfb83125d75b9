// Attention: decode, prefill, and latent pages.
#include <algorithm>
#include <cmath>
#include <numeric>

#include "absl/strings/str_cat.h"
#include "common/base/strings.h"
#include "tests/kernels/cuda/table/op_case.h"

namespace tandem::kernels {
namespace {

using tensor::Type;

constexpr uint32_t kBlock = 16;

struct Shape {
  std::string op;
  Type type = Type::kF16;
  uint32_t heads = 0;
  uint32_t kv_heads = 0;
  uint32_t head_dim = 0;
  uint32_t value_dim = 0;
  bool latent = false;
  uint32_t seqs = 1;
  uint32_t query = 1;  // rows of every sequence
  uint32_t context = 0;

  uint32_t tokens() const { return seqs * query; }
  uint32_t blocks() const { return (context + kBlock - 1) / kBlock; }  // of a sequence
  // Values of a position that are read, of one KV head.
  uint32_t page_row_bytes() const {
    return static_cast<uint32_t>(tensor::RowBytes(type, head_dim) +
                                 (latent ? 0 : tensor::RowBytes(type, value_dim)));
  }
};

// Page blocks of `variants` sets of sequences, each sequence's own and backwards.
std::vector<int32_t> Tables(const Shape& s, size_t variants) {
  std::vector<int32_t> tables(variants * s.seqs * s.blocks());
  for (size_t i = 0; i < tables.size(); ++i)
    tables[i] = static_cast<int32_t>(tables.size() - 1 - i);
  return tables;
}

EncodeCase Prepare(const Shape& s, CaseMemory& memory, size_t variants) {
  AttentionParams p{};
  p.q = memory.Floats(size_t{s.tokens()} * s.heads * s.head_dim);
  p.tokens = s.tokens();
  p.num_seqs = s.seqs;
  std::vector<int32_t> offsets;
  for (uint32_t i = 0; i <= s.seqs; ++i) offsets.push_back(static_cast<int32_t>(i * s.query));
  p.query_offsets = memory.Put(offsets);
  p.context_lens = memory.Put(std::vector<int32_t>(s.seqs, static_cast<int32_t>(s.context)));
  const auto* const tables = memory.Put(Tables(s, variants));
  std::vector<int32_t> table_rows(s.seqs);
  std::iota(table_rows.begin(), table_rows.end(), 0);
  p.table_rows = memory.Put(table_rows);
  p.table_stride = s.blocks();
  const size_t blocks = variants * s.seqs * s.blocks();
  const size_t rows = blocks * kBlock * s.kv_heads;
  p.pages = {.type = s.type,
             .k = memory.Pages(s.type, rows, s.head_dim),
             .v = s.latent ? nullptr : memory.Pages(s.type, rows, s.value_dim),
             .num_blocks = static_cast<uint32_t>(blocks),
             .block_size = kBlock,
             .kv_heads = s.kv_heads,
             .head_dim = s.head_dim,
             .value_dim = s.value_dim,
             .latent = s.latent};
  p.heads = s.heads;
  p.heads_per_kv = s.heads / s.kv_heads;
  p.scale = 1.0f / std::sqrt(static_cast<float>(s.head_dim));
  p.max_query_len = s.query;
  p.max_context_len = s.context;
  p.out =
      static_cast<float*>(memory.Room(size_t{s.tokens()} * s.heads * s.value_dim * sizeof(float)));
  return [p, tables, s](Backend& backend, size_t variant) {
    AttentionParams one = p;
    one.block_tables = tables + variant * s.seqs * s.blocks();
    backend.Encode(one);
  };
}

OpCase MakeCase(const Shape& s) {
  OpCase c;
  c.op = s.op;
  c.shape = absl::StrCat(Sv(tensor::Name(s.type)), ", ", s.seqs, " x ", s.query, " at ", s.context,
                         ", ", s.heads, "/", s.kv_heads, " heads of ", s.head_dim);
  c.bytes = 1.0 * s.seqs * s.context * s.kv_heads * s.page_row_bytes() +
            4.0 * s.tokens() * s.heads * (s.head_dim + s.value_dim);
  const double pairs = s.query * (s.context - (s.query - 1) / 2.0) * s.seqs * s.heads;
  c.flops = 2.0 * pairs * (s.head_dim + s.value_dim);
  c.prepare = [s](CaseMemory& memory, size_t variants) { return Prepare(s, memory, variants); };
  return c;
}

}  // namespace

std::vector<OpCase> AttentionCases(const TableSizes& sizes) {
  const Shape dense{.op = "Attention decode",
                    .heads = sizes.heads,
                    .kv_heads = sizes.kv_heads,
                    .head_dim = sizes.head_dim,
                    .value_dim = sizes.head_dim};
  std::vector<OpCase> cases;
  for (const uint32_t context : sizes.contexts) {
    for (const uint32_t seqs : sizes.batches) {
      Shape s = dense;
      s.seqs = seqs;
      s.context = context;
      cases.push_back(MakeCase(s));
    }
  }
  Shape bytes = dense;
  bytes.type = Type::kQ8_0;
  bytes.seqs = sizes.batches.back();
  bytes.context = sizes.contexts.back();
  cases.push_back(MakeCase(bytes));
  for (const uint32_t before : {0u, sizes.contexts.back()}) {
    Shape s = dense;
    s.op = "Attention prefill";
    s.query = sizes.prefill;
    s.context = before + sizes.prefill;
    cases.push_back(MakeCase(s));
  }
  for (const uint32_t query : {1u, sizes.prefill}) {
    cases.push_back(
        MakeCase({.op = query == 1 ? "Attention latent decode" : "Attention latent prefill",
                  .heads = sizes.mla_heads,
                  .kv_heads = 1,
                  .head_dim = sizes.mla_dim,
                  .value_dim = sizes.mla_value_dim,
                  .latent = true,
                  .seqs = query == 1 ? sizes.batches.back() : 1,
                  .query = query,
                  .context = std::max(sizes.contexts.back(), sizes.prefill)}));
  }
  return cases;
}

}  // namespace tandem::kernels
