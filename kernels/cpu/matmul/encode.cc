#include "kernels/cpu/matmul/encode.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>

#include "common/base/check.h"
#include "kernels/cpu/matmul/conversion.h"
#include "kernels/cpu/matmul/parts.h"
#include "kernels/cpu/matmul/window.h"

namespace tandem::kernels::cpu {
namespace {

// One projection's tasks: row parts times token parts.
struct PartTasks {
  Part part;
  uint32_t rows_per_task;
  uint32_t row_tasks;
};

struct ProductsParams {
  std::array<PartTasks, kMaxProjections> parts;
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
  const PartTasks& tasks = p.parts[i];
  // All rows for some tokens, whose activations stay in the L2 cache, before the next tokens.
  const uint32_t row = task % tasks.row_tasks * tasks.rows_per_task;
  const uint32_t token = task / tasks.row_tasks * p.tokens_per_task;
  RunPart(tasks.part,
          {.row_begin = row,
           .row_end = std::min(row + tasks.rows_per_task, tasks.part.product.rows),
           .token_begin = token,
           .token_end = std::min(token + p.tokens_per_task, p.tokens)},
          context);
}

}  // namespace

void EncodeProducts(host::OpList& list, const MatMulParams& params, const MatMulKernels& kernels,
                    const Conversion& conversion, const Window& all) {
  const bool few = params.tokens <= kFewTokens;
  ProductsParams products = {};
  products.tokens = params.tokens;
  products.tokens_per_task = TokensPerTask(params.tokens);
  products.token_tasks = CeilDiv(params.tokens, products.tokens_per_task);
  uint32_t num_tasks = 0;
  size_t thread_bytes = 0;
  for (uint32_t i = 0; i < params.num_projections; ++i) {
    const Weight& weight = params.projections[i].weight;
    if (weight.rows == 0) continue;
    PartTasks& tasks = products.parts[products.num_parts++];
    tasks.part = MakePart(params.projections[i], kernels, conversion, all);
    tasks.rows_per_task =
        few ? FewRows(weight.rows, RowBytesRead(weight), list.threads()) : kManyRows;
    tasks.row_tasks = CeilDiv(weight.rows, tasks.rows_per_task);
    num_tasks += tasks.row_tasks * products.token_tasks;
    thread_bytes = std::max(thread_bytes, tasks.part.thread_bytes);
  }
  list.ReserveScratch(conversion.end(), thread_bytes);
  list.Add("matmul", num_tasks, &RunProducts, products);
}

void EncodeMatMulWith(host::OpList& list, const MatMulParams& params, const MatMulKernels& kernels,
                      const NormBefore& norm) {
  TANDEM_CHECK(params.num_projections <= kMaxProjections);
  CheckProjections(params);
  if (params.tokens == 0 || params.num_projections == 0) return;
  const Window all = QuantisedWindow(params);
  const Conversion conversion = MakeConversion(params, kernels, all, 0);
  EncodeConversion(list, conversion, norm);
  EncodeProducts(list, params, kernels, conversion, all);
}

}  // namespace tandem::kernels::cpu
