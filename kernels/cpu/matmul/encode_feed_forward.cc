#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "common/base/check.h"
#include "kernels/cpu/matmul/conversion.h"
#include "kernels/cpu/matmul/encode.h"
#include "kernels/cpu/matmul/parts.h"
#include "kernels/cpu/matmul/quant_block.h"
#include "kernels/cpu/matmul/window.h"

namespace tandem::kernels::cpu {
namespace {

// The same rows of gate and up, for some tokens, then their activation and what `down` reads of it.
struct GateUpTask {
  Part gate;  // of up if there is no gate
  Part up;
  bool gated;
  ActivateTask activate;  // of all rows
  ActivateFn run_activate;
  Conversion conversion;  // of what activate writes
  uint32_t rows_per_task;
  uint32_t row_tasks;
  uint32_t tokens_per_task;
};

void Activate(const GateUpTask& task, const ProductRange& range) {
  for (uint32_t token = range.token_begin; token < range.token_end; ++token) {
    const size_t at = token * task.activate.cols + range.row_begin;
    ActivateTask row = task.activate;
    row.gate += at;
    if (row.up != nullptr) row.up += at;
    row.out += at;
    row.count = row.values_per_task = range.row_end - range.row_begin;
    task.run_activate(row, {});
  }
}

void RunGateUp(const GateUpTask& task, const host::TaskContext& context) {
  const uint32_t row = context.task % task.row_tasks * task.rows_per_task;
  const uint32_t token = context.task / task.row_tasks * task.tokens_per_task;
  const ProductRange range = {
      .row_begin = row,
      .row_end = std::min(row + task.rows_per_task, task.gate.product.rows),
      .token_begin = token,
      .token_end = std::min(token + task.tokens_per_task, task.conversion.tokens)};
  RunPart(task.gate, range, context);
  if (task.gated) RunPart(task.up, range, context);
  Activate(task, range);
  Convert(task.conversion,
          {range.token_begin, range.token_end, range.row_begin, range.row_end - range.row_begin},
          context.shared_scratch);
}

// Tasks convert whole blocks.
bool EndsAtBlocks(const Conversion& down) { return down.lead % QuantBlock::kValues == 0; }

void CheckParts(const MatMulParams& up, const ActivateParams& activate, const MatMulParams& down) {
  CheckProjections(up);
  CheckProjections(down);
  TANDEM_CHECK(up.num_projections == (activate.up == nullptr ? 1u : 2u));
  TANDEM_CHECK(down.num_projections == 1 && down.x == activate.out &&
               down.x_stride == activate.cols && down.tokens == up.tokens);
  for (uint32_t i = 0; i < up.num_projections; ++i) {
    const Projection& p = up.projections[i];
    TANDEM_CHECK(p.y == (i == 0 ? activate.gate : activate.up) && p.y_stride == activate.cols &&
                 p.weight.rows == activate.cols && activate.rows == up.tokens);
  }
}

GateUpTask MakeGateUpTask(const MatMulParams& up, const ActivateParams& activate,
                          const MatMulKernels& kernels, const Conversion& conversion,
                          const Window& all, uint32_t threads) {
  GateUpTask task = {};
  task.gate = MakePart(up.projections[0], kernels, conversion, all);
  task.gated = activate.up != nullptr;
  uint64_t row_bytes = RowBytesRead(up.projections[0].weight);
  if (task.gated) {
    task.up = MakePart(up.projections[1], kernels, conversion, all);
    row_bytes += RowBytesRead(up.projections[1].weight);
  }
  task.activate = {.function = activate.function,
                   .gate = activate.gate,
                   .up = activate.up,
                   .out = activate.out,
                   .gate_scale = nullptr,
                   .cols = activate.cols,
                   .count = 0,
                   .values_per_task = 0};
  task.rows_per_task = kManyRows;
  if (up.tokens <= kFewTokens) {
    task.rows_per_task = RoundUp(FewRows(activate.cols, row_bytes, threads), QuantBlock::kValues);
  }
  task.row_tasks = CeilDiv(activate.cols, task.rows_per_task);
  task.tokens_per_task = TokensPerTask(up.tokens);
  return task;
}

}  // namespace

void EncodeFeedForwardWith(host::OpList& list, const NormBefore& norm, const MatMulParams& up,
                           const ActivateParams& activate, ActivateFn run_activate,
                           const MatMulParams& down, const MatMulKernels& kernels) {
  CheckParts(up, activate, down);
  if (up.tokens == 0) return;
  const Window all = QuantisedWindow(up);
  const Conversion conversion = MakeConversion(up, kernels, all, 0);
  const Window all_down = QuantisedWindow(down);
  const Conversion to_down = MakeConversion(down, kernels, all_down, conversion.end());

  GateUpTask task = MakeGateUpTask(up, activate, kernels, conversion, all, list.threads());
  task.run_activate = run_activate;
  const bool converts = EndsAtBlocks(to_down);
  task.conversion = to_down;
  if (!converts) task.conversion.blocks = task.conversion.pairs = 0;

  EncodeConversion(list, conversion, norm);
  list.ReserveScratch(to_down.end(), std::max(task.gate.thread_bytes, task.up.thread_bytes));
  list.Add("gate, up", task.row_tasks * CeilDiv(up.tokens, task.tokens_per_task), &RunGateUp, task);
  if (!converts) EncodeConversion(list, to_down, {});
  EncodeProducts(list, down, kernels, to_down, all_down);
}

}  // namespace tandem::kernels::cpu
