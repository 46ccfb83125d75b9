// Qkv, the same as a product and RopeWriteKv, and RopeWriteKv alone: what one launch less is worth.
#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/base/strings.h"
#include "tests/kernels/cuda/table/op_case.h"

namespace tandem::kernels {
namespace {

using tensor::Type;

constexpr uint32_t kBlock = 16;

struct QkvTypes {
  Type qk;
  Type v;
};

// Of variant `index`.
QkvParams Variant(QkvParams p, const std::array<Weight, kMaxProjections>& all, size_t index) {
  for (uint32_t i = 0; i < kMaxProjections; ++i) {
    Weight& weight = p.product.projections[i].weight;
    weight.data = MatrixOf(all[i], index);
    weight.count = 1;
  }
  return p;
}

// Without q, k and v.
RopeWriteKvParams Write(const TableSizes& s, uint32_t rows, CaseMemory& memory) {
  std::vector<int32_t> slots(rows);
  for (uint32_t i = 0; i < rows; ++i) slots[i] = static_cast<int32_t>(rows - 1 - i);
  RopeWriteKvParams p{};
  p.tokens = rows;
  p.heads = s.heads;
  p.positions = p.slots = memory.Put(slots);
  p.inv_freq = memory.Floats(s.head_dim / 2);
  p.rotary_dims = s.head_dim;
  p.halves = true;
  p.magnitude = 1;
  const uint32_t blocks = rows / kBlock + 1;
  const size_t page_rows = size_t{blocks} * kBlock * s.kv_heads;
  p.pages = {.type = Type::kF16,
             .k = memory.Pages(Type::kF16, page_rows, s.head_dim),
             .v = memory.Pages(Type::kF16, page_rows, s.head_dim),
             .num_blocks = blocks,
             .block_size = kBlock,
             .kv_heads = s.kv_heads,
             .head_dim = s.head_dim,
             .value_dim = s.head_dim};
  return p;
}

std::string Heads(const TableSizes& s, uint32_t rows) {
  return absl::StrCat(rows, " rows, ", s.heads, "/", s.kv_heads, " heads");
}

OpCase RopeCase(const TableSizes& s, uint32_t rows) {
  const double q = 1.0 * rows * s.heads * s.head_dim, kv = 1.0 * rows * s.kv_heads * s.head_dim;
  OpCase c{.op = "RopeWriteKv", .shape = Heads(s, rows)};
  // q read and written; k and v read; k written back; k and v written to F16 pages.
  c.bytes = 8 * q + 12 * kv + 4 * kv;
  c.prepare = [=](CaseMemory& memory, size_t) -> EncodeCase {
    RopeWriteKvParams p = Write(s, rows, memory);
    p.q = memory.Floats(size_t{rows} * s.heads * s.head_dim);
    p.k = memory.Floats(size_t{rows} * s.kv_heads * s.head_dim);
    p.v = memory.Floats(size_t{rows} * s.kv_heads * s.head_dim);
    return [p](Backend& backend, size_t) { backend.Encode(p); };
  };
  return c;
}

OpCase QkvCase(const TableSizes& s, const QkvTypes& types, uint32_t rows, bool together) {
  const uint32_t q_dims = s.heads * s.head_dim, kv_dims = s.kv_heads * s.head_dim;
  const auto bytes_of = [&](Type type, uint32_t dims) {
    return static_cast<double>(dims) * static_cast<double>(tensor::RowBytes(type, s.hidden));
  };
  OpCase c;
  c.op = together ? "Qkv" : "Qkv in parts";
  c.shape = absl::StrCat(Sv(tensor::Name(types.qk)), " and ", Sv(tensor::Name(types.v)), ", ",
                         Heads(s, rows));
  // The residual read and written, and q, k and both pages.
  c.bytes = bytes_of(types.qk, q_dims + kv_dims) + bytes_of(types.v, kv_dims) +
            rows * (12.0 * s.hidden + 4.0 * q_dims + 8.0 * kv_dims);
  c.flops = 2.0 * rows * s.hidden * (q_dims + 2.0 * kv_dims);
  c.prepare = [=](CaseMemory& memory, size_t variants) -> EncodeCase {
    const auto count = static_cast<uint32_t>(variants);
    const std::array all = {memory.Matrices(types.qk, q_dims, s.hidden, count),
                            memory.Matrices(types.qk, kv_dims, s.hidden, count),
                            memory.Matrices(types.v, kv_dims, s.hidden, count)};
    const size_t n = size_t{rows} * s.hidden;
    auto* const x = static_cast<float*>(memory.Room(n * sizeof(float)));
    // Nothing is added again and again, so that values stay what they are.
    auto* const nothing = memory.Put(std::vector<float>(n));
    const RmsNormParams norm = {memory.Floats(n), nothing, memory.Floats(s.hidden), 1e-6f, rows,
                                s.hidden,         x};
    QkvParams p{.norm = norm,
                .product = {x, rows, s.hidden, kMaxProjections, {}},
                .v_norm = {},
                .q_norm = {},
                .k_norm = {},
                .write = Write(s, rows, memory)};
    for (uint32_t i = 0; i < kMaxProjections; ++i) {
      auto* const y = static_cast<float*>(memory.Room(size_t{rows} * all[i].rows * sizeof(float)));
      p.product.projections[i] = {all[i], nullptr, y, all[i].rows};
    }
    p.write.q = p.product.projections[0].y;
    p.write.k = p.product.projections[1].y;
    p.write.v = p.product.projections[2].y;
    return [=](Backend& backend, size_t variant) {
      const QkvParams one = Variant(p, all, variant);
      if (together) return backend.Encode(one);
      backend.Encode(NormMatMulParams{.norm = one.norm, .product = one.product});
      backend.Encode(one.write);
    };
  };
  return c;
}

}  // namespace

std::vector<OpCase> QkvCases(const TableSizes& s) {
  std::vector<OpCase> cases;
  for (const QkvTypes& types : {QkvTypes{Type::kQ4_K, Type::kQ6_K}, {Type::kQ8_0, Type::kQ8_0}}) {
    for (const uint32_t rows : {s.batches.front(), s.batches.back()}) {
      for (const bool together : {true, false}) cases.push_back(QkvCase(s, types, rows, together));
    }
  }
  for (const uint32_t rows : {s.batches.front(), s.batches.back(), s.prefill})
    cases.push_back(RopeCase(s, rows));
  return cases;
}

}  // namespace tandem::kernels
