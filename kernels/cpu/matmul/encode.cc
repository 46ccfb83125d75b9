#include "kernels/cpu/matmul/encode.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>

#include "common/base/check.h"
#include "common/tensor/type.h"
#include "kernels/cpu/matmul/bf16_pairs.h"
#include "kernels/cpu/matmul/dispatch.h"
#include "kernels/cpu/matmul/quant_block.h"
#include "kernels/cpu/matmul/window.h"

namespace tandem::kernels::cpu {
namespace {

// Rows of a task that unpacks weights for many tokens, and about how many tokens it takes.
constexpr uint32_t kManyRows = 64;
constexpr uint32_t kManyTokens = 256;
// Tokens whose activations one task converts.
constexpr uint32_t kConvertTokens = 4;

// Activations in the shared scratch: quantised rows, then rows of BF16 pairs.
struct ConvertParams {
  const float* x;
  size_t x_stride;
  uint32_t tokens;
  uint32_t count;
  uint32_t lead;    // zeros before a quantised row
  uint32_t blocks;  // of a quantised row; 0: none is needed
  uint32_t pairs;   // of a row of pairs; 0: none is needed

  size_t pairs_at() const { return RoundToLine(size_t{tokens} * blocks * sizeof(QuantBlock)); }
  size_t bytes() const { return pairs_at() + size_t{tokens} * pairs * sizeof(uint32_t); }
};

void RunConvert(const ConvertParams& p, const host::TaskContext& context) {
  auto* const blocks = reinterpret_cast<QuantBlock*>(context.shared_scratch);
  auto* const pairs = reinterpret_cast<uint32_t*>(context.shared_scratch + p.pairs_at());
  const uint32_t begin = context.task * kConvertTokens;
  const uint32_t end = std::min(begin + kConvertTokens, p.tokens);
  for (size_t t = begin; t < end; ++t) {
    const float* const x = p.x + t * p.x_stride;
    if (p.blocks > 0) QuantizeRow(x, p.count, p.lead, p.blocks, blocks + t * p.blocks);
    if (p.pairs > 0) RoundToBf16Pairs(x, p.count, pairs + t * p.pairs);
  }
}

// One projection's tasks: row parts times token parts.
struct Part {
  Product product;  // if x is in the shared scratch, that is null
  void (*run)(const Product&, const ProductRange&, std::byte* scratch);
  size_t x_at;  // bytes from the scratch's start
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
  if (product.x == nullptr) product.x = context.shared_scratch + part.x_at;
  // All rows for some tokens, whose activations stay in the L2 cache, before the next tokens.
  const uint32_t row = task % part.row_tasks * part.rows_per_task;
  const uint32_t token = task / part.row_tasks * p.tokens_per_task;
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

// Whether any projection's kernel reads activations in that form.
bool AnyReads(const MatMulParams& params, const MatMulKernels& kernels, Activations form) {
  for (uint32_t i = 0; i < params.num_projections; ++i) {
    const Weight& weight = params.projections[i].weight;
    const Kernel* const kernel = FindKernel(kernels, weight.type);
    TANDEM_CHECK(kernel != nullptr) << tensor::Name(weight.type);
    if (kernel->activations == form) return true;
  }
  return false;
}

// `all`: the columns that are quantised.
ConvertParams MakeConvert(const MatMulParams& params, const MatMulKernels& kernels,
                          const Window& all) {
  const Weight& any = params.projections[0].weight;
  ConvertParams convert = {};
  convert.x = params.x;
  convert.x_stride = params.x_stride;
  convert.tokens = params.tokens;
  convert.count = any.col_count;
  convert.blocks = QuantBlocks(all);
  convert.lead = convert.blocks > 0 ? any.col_begin - all.begin : 0;
  if (AnyReads(params, kernels, Activations::kBf16Pairs)) convert.pairs = Bf16Pairs(any.col_count);
  return convert;
}

// But for its tasks.
Part MakePart(const Projection& projection, const Kernel& kernel, const ConvertParams& convert,
              const Window& all) {
  const Weight& weight = projection.weight;
  const Window window = WindowOf(weight);
  Part part = {};
  part.run = kernel.run;
  part.product = {
      .weights = FirstRow(weight, window),
      .stride_bytes = weight.row_stride_bytes,
      .in_panels = weight.panel_rows > 0,
      .rows = weight.rows,
      .cols = window.cols(),
      .x = nullptr,
      .x_stride = 0,
      .bias = projection.bias,
      .y = projection.y,
      .y_stride = projection.y_stride,
  };
  switch (kernel.activations) {
    case Activations::kFloats:
      part.product.x = convert.x;
      part.product.x_stride = convert.x_stride;
      break;
    case Activations::kQuantBlocks:
      part.x_at = (window.begin - all.begin) / QuantBlock::kValues * sizeof(QuantBlock);
      part.product.x_stride = convert.blocks;
      break;
    case Activations::kBf16Pairs:
      part.x_at = convert.pairs_at();
      part.product.x_stride = convert.pairs;
      break;
  }
  return part;
}

}  // namespace

void EncodeMatMulWith(host::OpList& list, const MatMulParams& params,
                      const MatMulKernels& kernels) {
  TANDEM_CHECK(params.num_projections <= kMaxProjections);
  CheckProjections(params);
  if (params.tokens == 0 || params.num_projections == 0) return;
  const bool few = params.tokens <= kFewTokens;
  const Window all = QuantisedWindow(params);
  const ConvertParams convert = MakeConvert(params, kernels, all);

  ProductsParams products = {};
  products.tokens = params.tokens;
  products.tokens_per_task = few ? params.tokens : TokensPerTask(params.tokens);
  products.token_tasks = CeilDiv(params.tokens, products.tokens_per_task);
  uint32_t num_tasks = 0;
  size_t thread_bytes = 0;
  for (uint32_t i = 0; i < params.num_projections; ++i) {
    const Weight& weight = params.projections[i].weight;
    if (weight.rows == 0) continue;
    CheckLayout(weight, kernels);
    const Kernel& kernel = *FindKernel(kernels, weight.type);
    Part& part = products.parts[products.num_parts++];
    part = MakePart(params.projections[i], kernel, convert, all);
    const uint32_t cols = part.product.cols;
    part.rows_per_task =
        few ? FewRows(weight, tensor::RowBytes(weight.type, cols), list.threads()) : kManyRows;
    part.row_tasks = CeilDiv(weight.rows, part.rows_per_task);
    num_tasks += part.row_tasks * products.token_tasks;
    if (!few) thread_bytes = std::max(thread_bytes, kernel.scratch_bytes(cols));
  }

  list.ReserveScratch(convert.bytes(), thread_bytes);
  if (convert.blocks + convert.pairs > 0) {
    list.Add("matmul.convert", CeilDiv(params.tokens, kConvertTokens), &RunConvert, convert);
  }
  list.Add("matmul", num_tasks, &RunProducts, products);
}

}  // namespace tandem::kernels::cpu
