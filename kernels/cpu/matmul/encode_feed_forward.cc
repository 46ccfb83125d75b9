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

constexpr uint32_t kMostValues = kManyRows * kMostTokensPerTask;  // of gate or up, in a task
constexpr size_t kValueBytes = RoundToLine(kMostValues * sizeof(float));

// The same rows of gate and up, for some tokens, then their activation and what `down` reads of it.
// Gate and up stay in the thread's scratch; so does the activation, if `down` reads another form.
struct GateUpTask {
  Part gate;  // of up if there is no gate
  Part up;
  bool gated;
  ActivateTask activate;  // `out` of all rows
  ActivateFn run_activate;
  Conversion conversion;  // of what activate writes
  uint32_t rows_per_task;
  uint32_t row_tasks;
  uint32_t tokens_per_task;
  size_t gate_at;  // bytes from the start of the thread's scratch; up is kValueBytes after it
};

// Of `count` values from `gate` and `up` on.
void Activate(const GateUpTask& task, const float* gate, const float* up, size_t count,
              float* out) {
  ActivateTask values = task.activate;
  values.gate = gate;
  values.up = task.gated ? up : nullptr;
  values.out = out;
  values.count = values.values_per_task = count;
  task.run_activate(values, {});
}

void RunGateUp(const GateUpTask& task, const host::TaskContext& context) {
  const uint32_t row = context.task % task.row_tasks * task.rows_per_task;
  const uint32_t token = context.task / task.row_tasks * task.tokens_per_task;
  const ProductRange range = {
      .row_begin = row,
      .row_end = std::min(row + task.rows_per_task, task.gate.product.rows),
      .token_begin = token,
      .token_end = std::min(token + task.tokens_per_task, task.conversion.tokens)};
  const size_t rows = range.row_end - row;
  const size_t tokens = range.token_end - token;
  auto* const gate = reinterpret_cast<float*>(context.thread_scratch + task.gate_at);
  auto* const up = gate + kValueBytes / sizeof(float);
  RunPartTo(gate, rows, task.gate, range, context);
  if (task.gated) RunPartTo(up, rows, task.up, range, context);
  if (task.conversion.needed()) {
    Activate(task, gate, up, tokens * rows, gate);
    Convert(gate, rows, task.conversion,
            {range.token_begin, range.token_end, row, static_cast<uint32_t>(rows)},
            context.shared_scratch);
    return;
  }
  for (size_t t = 0; t < tokens; ++t) {
    Activate(task, gate + t * rows, up + t * rows, rows,
             task.activate.out + (token + t) * task.activate.cols + row);
  }
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
                   .gate = nullptr,
                   .up = nullptr,
                   .out = activate.out,
                   .gate_scale = nullptr,
                   .cols = activate.cols,
                   .count = 0,
                   .values_per_task = 0};
  task.rows_per_task = kManyRows;
  if (up.tokens <= kFewTokens) {
    const uint32_t most = kMostValues / up.tokens / QuantBlock::kValues * QuantBlock::kValues;
    task.rows_per_task =
        std::min(RoundUp(FewRows(activate.cols, row_bytes, threads), QuantBlock::kValues), most);
  }
  task.row_tasks = CeilDiv(activate.cols, task.rows_per_task);
  task.tokens_per_task = TokensPerTask(up.tokens);
  task.gate_at = RoundToLine(std::max(task.gate.thread_bytes, task.up.thread_bytes));
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
  list.ReserveScratch(to_down.end(), task.gate_at + (task.gated ? 2 : 1) * kValueBytes);
  list.Add("gate, up", task.row_tasks * CeilDiv(up.tokens, task.tokens_per_task), &RunGateUp, task);
  if (!converts) EncodeConversion(list, to_down, {});
  EncodeProducts(list, down, kernels, to_down, all_down);
}

}  // namespace tandem::kernels::cpu
