// Ops that pass over rows: norms, gates, copies, routing, embedding.
#include "absl/strings/str_cat.h"
#include "tests/kernels/cuda/table/op_case.h"

namespace tandem::kernels {
namespace {

using tensor::Type;

constexpr float kEpsilon = 1e-6f;

std::string Rows(uint32_t rows, uint32_t dim) { return absl::StrCat(rows, " x ", dim); }

float* RoomFor(CaseMemory& memory, size_t floats) {
  return static_cast<float*>(memory.Room(floats * sizeof(float)));
}

// `what(memory)` gives the function that encodes; all variants are one: activations come from the
// cache in a model as well.
template <typename Make>
OpCase Simple(std::string op, std::string shape, double bytes, Make make) {
  OpCase c{.op = std::move(op), .shape = std::move(shape), .bytes = bytes};
  c.prepare = [make](CaseMemory& memory, size_t) -> EncodeCase {
    return [encode = make(memory)](Backend& backend, size_t) { encode(backend); };
  };
  return c;
}

OpCase RmsNormCase(uint32_t rows, uint32_t dim) {
  return Simple("RmsNorm", Rows(rows, dim), 16.0 * rows * dim + 4.0 * dim, [=](CaseMemory& m) {
    const size_t n = size_t{rows} * dim;
    // Nothing is added again and again, so that values stay what they are.
    auto* const nothing = m.Put(std::vector<float>(n));
    const RmsNormParams p{m.Floats(n), nothing, m.Floats(dim), kEpsilon, rows, dim, RoomFor(m, n)};
    return [p](Backend& b) { b.Encode(p); };
  });
}

OpCase LayerNormCase(uint32_t rows, uint32_t dim) {
  return Simple("LayerNorm", Rows(rows, dim), 16.0 * rows * dim + 8.0 * dim, [=](CaseMemory& m) {
    const size_t n = size_t{rows} * dim;
    auto* const nothing = m.Put(std::vector<float>(n));
    const LayerNormParams p{m.Floats(n), nothing, m.Floats(dim), m.Floats(dim),
                            kEpsilon,    rows,    dim,           RoomFor(m, n)};
    return [p](Backend& b) { b.Encode(p); };
  });
}

OpCase ActivateCase(Activation function, const std::string& name, uint32_t rows, uint32_t cols) {
  return Simple("Activate " + name, Rows(rows, cols), 12.0 * rows * cols, [=](CaseMemory& m) {
    const size_t n = size_t{rows} * cols;
    const ActivateParams p{function, m.Floats(n), m.Floats(n), rows, cols, RoomFor(m, n)};
    return [p](Backend& b) { b.Encode(p); };
  });
}

OpCase AddRowsCase(uint32_t rows, uint32_t dim) {
  return Simple("AddRows", Rows(rows, dim), 12.0 * rows * dim, [=](CaseMemory& m) {
    const size_t n = size_t{rows} * dim;
    const AddRowsParams p{m.Floats(n), m.Put(std::vector<float>(n)), m.Floats(rows), rows, dim};
    return [p](Backend& b) { b.Encode(p); };
  });
}

OpCase CopyRowsCase(uint32_t rows, uint32_t dim) {
  return Simple("CopyRows", Rows(rows, dim), 8.0 * rows * dim, [=](CaseMemory& m) {
    const CopyRowsParams p{m.Floats(size_t{rows} * 2 * dim), 2 * dim, rows, dim,
                           RoomFor(m, size_t{rows} * dim),   dim};
    return [p](Backend& b) { b.Encode(p); };
  });
}

OpCase GatherRowsCase(uint32_t rows, uint32_t dim) {
  return Simple("GatherRows", Rows(rows, dim), 8.0 * rows * dim + 4.0 * rows, [=](CaseMemory& m) {
    std::vector<int32_t> from(rows);
    for (uint32_t i = 0; i < rows; ++i) from[i] = static_cast<int32_t>(2 * i);
    const GatherRowsParams p{m.Floats(size_t{rows} * 2 * dim), m.Put(from), rows, dim,
                             RoomFor(m, size_t{rows} * dim)};
    return [p](Backend& b) { b.Encode(p); };
  });
}

OpCase RouteCase(const TableSizes& s, uint32_t tokens) {
  return Simple("Route", absl::StrCat(tokens, " x ", s.experts_chosen, " of ", s.experts),
                4.0 * tokens * (s.experts + 2 * s.experts_chosen), [=](CaseMemory& m) {
                  RouteParams p{};
                  p.logits = m.Floats(size_t{tokens} * s.experts);
                  p.tokens = tokens;
                  p.experts = s.experts;
                  p.top_k = s.experts_chosen;
                  p.normalize = true;
                  p.scale = 1;
                  p.groups = p.groups_kept = p.group_top = 1;
                  const size_t chosen = size_t{tokens} * s.experts_chosen;
                  p.ids = static_cast<int32_t*>(m.Room(chosen * sizeof(int32_t)));
                  p.weights = RoomFor(m, chosen);
                  return [p](Backend& b) { b.Encode(p); };
                });
}

OpCase EmbedCase(const TableSizes& s, uint32_t tokens) {
  const double row = static_cast<double>(tensor::RowBytes(Type::kQ8_0, s.hidden));
  return Simple("Embed", "Q8_0, " + Rows(tokens, s.hidden), tokens * (row + 4.0 * s.hidden + 4),
                [=](CaseMemory& m) {
                  std::vector<int32_t> ids(tokens);
                  for (uint32_t i = 0; i < tokens; ++i)
                    ids[i] = static_cast<int32_t>(i * size_t{7919} % s.vocab);
                  EmbedParams p{};
                  p.ids = m.Put(ids);
                  p.tokens = tokens;
                  p.table = m.Matrices(Type::kQ8_0, s.vocab, s.hidden, 1);
                  p.scale = 1;
                  p.out = RoomFor(m, size_t{tokens} * s.hidden);
                  return [p](Backend& b) { b.Encode(p); };
                });
}

}  // namespace

std::vector<OpCase> RowCases(const TableSizes& s) {
  std::vector<OpCase> cases;
  for (const uint32_t rows : {s.batches.front(), s.batches.back(), s.prefill}) {
    cases.push_back(RmsNormCase(rows, s.hidden));
    cases.push_back(ActivateCase(Activation::kSilu, "SiLU", rows, s.ffn));
  }
  cases.push_back(ActivateCase(Activation::kGeluTanh, "GELU", s.prefill, s.ffn));
  cases.push_back(LayerNormCase(s.prefill, s.hidden));
  cases.push_back(AddRowsCase(s.prefill, s.hidden));
  cases.push_back(CopyRowsCase(s.prefill, s.hidden));
  cases.push_back(GatherRowsCase(s.batches.back(), s.hidden));
  for (const uint32_t rows : {s.batches.back(), s.prefill}) cases.push_back(RouteCase(s, rows));
  cases.push_back(EmbedCase(s, s.prefill));
  return cases;
}

}  // namespace tandem::kernels
