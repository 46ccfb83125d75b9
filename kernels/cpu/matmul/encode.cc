#include "kernels/cpu/matmul/encode.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>

#include "common/base/check.h"
#include "common/tensor/type.h"
#include "kernels/cpu/matmul/dispatch.h"
#include "kernels/cpu/matmul/quant_block.h"
#include "kernels/cpu/matmul/window.h"

namespace tandem::kernels::cpu {
namespace {

// Rows of a task that unpacks weights for many tokens, and about how many tokens it takes.
constexpr uint32_t kManyRows = 64;
constexpr uint32_t kManyTokens = 256;
// Tokens whose activations one task quantises.
constexpr uint32_t kQuantiseTokens = 4;

struct QuantiseParams {
  const float* x;
  size_t x_stride;
  uint32_t tokens;
  uint32_t count;
  uint32_t lead;
  uint32_t blocks;
};

void RunQuantise(const QuantiseParams& p, const host::TaskContext& context) {
  auto* out = reinterpret_cast<QuantBlock*>(context.shared_scratch);
  const uint32_t begin = context.task * kQuantiseTokens;
  const uint32_t end = std::min(begin + kQuantiseTokens, p.tokens);
  for (uint32_t t = begin; t < end; ++t) {
    QuantizeRow(p.x + t * p.x_stride, p.count, p.lead, p.blocks, out + size_t{t} * p.blocks);
  }
}

// One projection's tasks: row parts times token parts.
struct Part {
  Product product;
  void (*run)(const Product&, const ProductRange&, std::byte* scratch);
  bool quantised;        // x is in the shared scratch, product.x is null
  uint32_t first_block;  // of x there
  uint32_t rows_per_task;
  uint32_t row_tasks;
};

struct ProductsParams {
  std::array<Part, kMaxProjections> parts;
  uint32_t num_parts;
  uint32_t tokens;
  uint32_t tokens_per_task;
  uint32_t token_tasks;
};

void RunProducts(const ProductsParams& p, const host::TaskContext& context) {
  uint32_t task = context.task;
  uint32_t i = 0;
  while (task >= p.parts[i].row_tasks * p.token_tasks) {
    task -= p.parts[i].row_tasks * p.token_tasks;
    ++i;
  }
  const Part& part = p.parts[i];
  Product product = part.product;
  if (part.quantised) {
    product.x = reinterpret_cast<const QuantBlock*>(context.shared_scratch) + part.first_block;
  }
  const uint32_t row = task / p.token_tasks * part.rows_per_task;
  const uint32_t token = task % p.token_tasks * p.tokens_per_task;
  part.run(product,
           {.row_begin = row,
            .row_end = std::min(row + part.rows_per_task, product.rows),
            .token_begin = token,
            .token_end = std::min(token + p.tokens_per_task, p.tokens)},
           context.thread_scratch);
}

// With few tokens a task reads enough memory to be worth its start, and there are enough tasks to
// even out threads of unequal speed.
uint32_t FewRows(const Weight& weight, uint64_t row_bytes, uint32_t threads) {
  if (threads == 1) return RoundUp(weight.rows, kRowAlign);
  constexpr uint64_t kLeast = uint64_t{64} << 10;
  constexpr uint64_t kMost = uint64_t{1} << 20;
  const uint64_t bytes = std::clamp(weight.rows * row_bytes / (threads * 16), kLeast, kMost);
  return RoundUp(std::max<uint64_t>(bytes / std::max<uint64_t>(row_bytes, 1), 1), kRowAlign);
}

// Even parts of whole sets of tokens (4 with AVX2, 6 with AVX-512).
uint32_t TokensPerTask(uint32_t tokens) {
  return RoundUp(CeilDiv(tokens, CeilDiv(tokens, kManyTokens)), 12);
}

}  // namespace

void EncodeMatMulWith(host::OpList& list, const MatMulParams& params,
                      const MatMulKernels& kernels) {
  TANDEM_CHECK(params.num_projections <= kMaxProjections);
  CheckProjections(params);
  if (params.tokens == 0 || params.num_projections == 0) return;
  const bool few = params.tokens <= kFewTokens;

  const Weight& any = params.projections[0].weight;
  const Window all = QuantisedWindow(params);
  const uint32_t x_blocks = QuantBlocks(all);

  ProductsParams products = {};
  products.tokens = params.tokens;
  products.tokens_per_task = few ? params.tokens : TokensPerTask(params.tokens);
  products.token_tasks = CeilDiv(params.tokens, products.tokens_per_task);
  uint32_t num_tasks = 0;
  size_t thread_bytes = 0;
  for (uint32_t i = 0; i < params.num_projections; ++i) {
    const Projection& projection = params.projections[i];
    const Weight& weight = projection.weight;
    if (weight.rows == 0) continue;
    const tensor::TypeTraits& traits = tensor::Traits(weight.type);
    const Kernel* kernel = FindKernel(kernels, weight.type);
    TANDEM_CHECK(kernel != nullptr) << traits.name;
    const Window window = WindowOf(weight);
    const uint32_t cols = window.cols();
    const uint64_t row_bytes = tensor::RowBytes(weight.type, cols);

    Part& part = products.parts[products.num_parts++];
    part.quantised = IsQuantised(weight);
    part.first_block = part.quantised ? (window.begin - all.begin) / QuantBlock::kValues : 0;
    part.run = kernel->run;
    CheckLayout(weight, kernels);
    part.product = {
        .weights = FirstRow(weight, window),
        .stride_bytes = weight.row_stride_bytes,
        .in_panels = weight.panel_rows > 0,
        .rows = weight.rows,
        .cols = cols,
        .x = part.quantised ? nullptr : params.x,
        .x_stride = part.quantised ? x_blocks : params.x_stride,
        .bias = projection.bias,
        .y = projection.y,
        .y_stride = projection.y_stride,
    };
    part.rows_per_task = few ? FewRows(weight, row_bytes, list.threads()) : kManyRows;
    part.row_tasks = CeilDiv(weight.rows, part.rows_per_task);
    num_tasks += part.row_tasks * products.token_tasks;
    if (!few) thread_bytes = std::max(thread_bytes, kernel->scratch_bytes(cols));
  }

  list.ReserveScratch(size_t{params.tokens} * x_blocks * sizeof(QuantBlock), thread_bytes);
  if (x_blocks > 0) {
    list.Add("matmul.quantise", CeilDiv(params.tokens, kQuantiseTokens), &RunQuantise,
             QuantiseParams{params.x, params.x_stride, params.tokens, any.col_count,
                            any.col_begin - all.begin, x_blocks});
  }
  list.Add("matmul", num_tasks, &RunProducts, products);
}

}  // namespace tandem::kernels::cpu
