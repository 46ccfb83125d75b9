// MatMul, ExpertMatMul and HeadMatMul.
#include <algorithm>
#include <numeric>
#include <random>

#include "absl/strings/str_cat.h"
#include "common/base/strings.h"
#include "tests/kernels/cuda/table/op_case.h"

namespace tandem::kernels {
namespace {

using tensor::Type;

// `parts` projections of `rows` rows each, merged.
OpCase MatMulCase(const std::string& what, Type type, uint32_t tokens, uint32_t rows, uint32_t cols,
                  uint32_t parts) {
  OpCase c;
  c.op = absl::StrCat("MatMul ", what);
  c.shape = absl::StrCat(Sv(tensor::Name(type)), ", ", tokens, " x ", cols, " -> ", parts * rows);
  c.bytes = static_cast<double>(parts) * rows * static_cast<double>(tensor::RowBytes(type, cols)) +
            4.0 * tokens * (cols + static_cast<double>(parts) * rows);
  c.flops = 2.0 * tokens * cols * parts * rows;
  c.prepare = [=](CaseMemory& memory, size_t variants) -> EncodeCase {
    const Weight all = memory.Matrices(type, rows, cols, static_cast<uint32_t>(variants) * parts);
    MatMulParams p{};
    p.x = memory.Floats(size_t{tokens} * cols);
    p.tokens = tokens;
    p.x_stride = cols;
    p.num_projections = parts;
    for (uint32_t i = 0; i < parts; ++i) {
      auto* const y = static_cast<float*>(memory.Room(size_t{tokens} * rows * sizeof(float)));
      p.projections[i] = {all, nullptr, y, rows};
      p.projections[i].weight.count = 1;
    }
    return [p, all, parts](Backend& backend, size_t variant) {
      MatMulParams one = p;
      for (uint32_t i = 0; i < parts; ++i)
        one.projections[i].weight.data = MatrixOf(all, variant * parts + i);
      backend.Encode(one);
    };
  };
  return c;
}

// Distinct experts for every token.
std::vector<int32_t> ChooseExperts(const TableSizes& sizes, uint32_t tokens) {
  std::minstd_rand random(5);
  std::vector<int32_t> all(sizes.experts), ids;
  std::iota(all.begin(), all.end(), 0);
  for (uint32_t t = 0; t < tokens; ++t) {
    std::shuffle(all.begin(), all.end(), random);
    ids.insert(ids.end(), all.begin(), all.begin() + sizes.experts_chosen);
  }
  return ids;
}

size_t CountDistinct(std::vector<int32_t> ids) {
  std::sort(ids.begin(), ids.end());
  return static_cast<size_t>(std::unique(ids.begin(), ids.end()) - ids.begin());
}

OpCase ExpertCase(const TableSizes& s, Type type, uint32_t tokens, bool down) {
  const uint32_t rows = down ? s.moe_hidden : s.moe_ffn;
  const uint32_t cols = down ? s.moe_ffn : s.moe_hidden;
  const uint32_t parts = down ? 1 : 2;
  const std::vector<int32_t> ids = ChooseExperts(s, tokens);
  const double choices = static_cast<double>(ids.size());
  OpCase c;
  c.op = down ? "ExpertMatMul down" : "ExpertMatMul up";
  c.shape = absl::StrCat(Sv(tensor::Name(type)), ", ", tokens, " tokens, ", s.experts_chosen,
                         " of ", s.experts, " experts, ", cols, " -> ", parts * rows);
  c.bytes = static_cast<double>(CountDistinct(ids)) * parts * rows *
                static_cast<double>(tensor::RowBytes(type, cols)) +
            4.0 * (down ? choices * cols + 1.0 * tokens * rows
                        : 1.0 * tokens * cols + choices * parts * rows);
  c.flops = 2.0 * choices * cols * parts * rows;
  c.prepare = [=](CaseMemory& memory, size_t variants) -> EncodeCase {
    const auto sets = static_cast<uint32_t>(variants);
    const Weight all = memory.Matrices(type, rows, cols, sets * parts * s.experts);
    ExpertMatMulParams p{};
    p.x = memory.Floats((down ? ids.size() : tokens) * cols);
    p.tokens = tokens;
    p.x_stride = cols;
    p.top_k = s.experts_chosen;
    p.ids = memory.Put(ids);
    p.weights = down ? memory.Floats(ids.size()) : nullptr;
    p.num_experts = s.experts;
    p.num_projections = parts;
    for (uint32_t i = 0; i < parts; ++i) {
      auto* const y =
          static_cast<float*>(memory.Room((down ? tokens : ids.size()) * rows * sizeof(float)));
      p.projections[i] = {all, nullptr, 0, y};
      p.projections[i].weight.count = s.experts;
    }
    return [=](Backend& backend, size_t variant) {
      ExpertMatMulParams one = p;
      for (uint32_t i = 0; i < parts; ++i)
        one.projections[i].weight.data = MatrixOf(all, (variant * parts + i) * s.experts);
      backend.Encode(one);
    };
  };
  return c;
}

// What takes a head's query into the latent space, or its latent value out of it.
OpCase HeadCase(const TableSizes& s, Type type, uint32_t tokens, bool transposed) {
  const uint32_t in = transposed ? s.mla_head_dim : s.mla_value_dim;
  const uint32_t out = transposed ? s.mla_value_dim : s.mla_head_dim;
  OpCase c;
  c.op = transposed ? "HeadMatMul transposed" : "HeadMatMul";
  c.shape = absl::StrCat(Sv(tensor::Name(type)), ", ", tokens, " x ", s.mla_heads, " heads, ", in,
                         " -> ", out);
  c.bytes = 1.0 * s.mla_heads * s.mla_head_dim *
                static_cast<double>(tensor::RowBytes(type, s.mla_value_dim)) +
            4.0 * tokens * s.mla_heads * (in + out);
  c.flops = 2.0 * tokens * s.mla_heads * in * out;
  c.prepare = [=](CaseMemory& memory, size_t variants) -> EncodeCase {
    const Weight all = memory.Matrices(type, s.mla_heads * s.mla_head_dim, s.mla_value_dim,
                                       static_cast<uint32_t>(variants));
    HeadMatMulParams p{};
    p.x = memory.Floats(size_t{tokens} * s.mla_heads * in);
    p.tokens = tokens;
    p.heads = s.mla_heads;
    p.x_token_stride = s.mla_heads * in;
    p.x_head_stride = in;
    p.weight = all;
    p.weight.count = 1;
    p.rows_per_head = s.mla_head_dim;
    p.row_count = s.mla_head_dim;
    p.transposed = transposed;
    p.y = static_cast<float*>(memory.Room(size_t{tokens} * s.mla_heads * out * sizeof(float)));
    p.y_token_stride = s.mla_heads * out;
    p.y_head_stride = out;
    return [p, all](Backend& backend, size_t variant) {
      HeadMatMulParams one = p;
      one.weight.data = MatrixOf(all, variant);
      backend.Encode(one);
    };
  };
  return c;
}

}  // namespace

std::vector<OpCase> ProductCases(const TableSizes& s) {
  std::vector<OpCase> cases;
  for (const Type type : {Type::kQ4_K, Type::kQ6_K, Type::kQ8_0, Type::kBF16}) {
    for (const uint32_t tokens : s.product_tokens) {
      cases.push_back(MatMulCase("gate, up", type, tokens, s.ffn, s.hidden, 2));
      cases.push_back(MatMulCase("down", type, tokens, s.hidden, s.ffn, 1));
    }
  }
  for (const uint32_t tokens : {s.batches.front(), s.batches.back(), s.prefill}) {
    for (const bool down : {false, true}) cases.push_back(ExpertCase(s, Type::kQ4_K, tokens, down));
    if (tokens == s.prefill) continue;
    cases.push_back(MatMulCase("head", Type::kQ6_K, tokens, s.vocab, s.hidden, 1));
  }
  for (const bool transposed : {true, false})
    cases.push_back(HeadCase(s, Type::kQ8_0, s.batches.back(), transposed));
  return cases;
}

}  // namespace tandem::kernels
