#include <algorithm>
#include <array>
#include <cstring>

#include "common/base/check.h"
#include "kernels/cpu/matmul/bf16_pairs.h"
#include "kernels/cpu/matmul/dispatch.h"
#include "kernels/cpu/matmul/encode.h"
#include "kernels/cpu/matmul/expert_groups.h"
#include "kernels/cpu/matmul/quant_block.h"
#include "kernels/cpu/matmul/quantize.h"
#include "kernels/cpu/matmul/window.h"

namespace tandem::kernels::cpu {
namespace {

// Tokens whose activations one task gathers.
constexpr uint32_t kGatherTokens = 4;
// Tokens of an expert that share one reading of its rows; a bound on scratch alone.
constexpr int32_t kMostTokens = 1024;

// One projection.
struct Part {
  void (*run)(const Product&, const ProductRange&, std::byte* scratch);
  const std::byte* weights;  // of the rank's first expert, at the window's first column
  uint64_t stride_bytes;
  bool in_panels;
  PanelAhead ahead;
  uint64_t expert_stride_bytes;
  const float* scales;  // of the rank's experts, or null
  uint32_t rows;
  uint32_t cols;       // of the window
  size_t x_at;         // of the first gathered row, in shared scratch
  size_t x_row_bytes;  // from there to the next
  size_t x_stride;     // the same in elements
  const float* bias;
  uint32_t bias_stride;
  float* y;
  uint32_t rows_per_task;
  uint32_t row_tasks;
};

// Shared scratch: the groups, then the gathered rows in each form that a projection reads.
struct Task {
  const float* x;
  size_t x_stride;
  uint32_t tokens;
  uint32_t top_k;
  const int32_t* ids;
  const float* weights;  // down: of the choices; up: null
  uint32_t expert_begin;
  uint32_t experts;
  uint32_t x_cols;
  uint32_t x_lead;    // zeros before a quantised row
  uint32_t x_blocks;  // of a quantised row; 0: not needed
  uint32_t x_pairs;   // of a row of BF16 pairs; 0: not needed
  bool floats;        // rows of floats are needed
  size_t quantised_at;
  size_t pairs_at;
  size_t floats_at;
  size_t outputs_at;  // in a thread's scratch
  std::array<Part, 2> parts;
  uint32_t num_parts;

  bool down() const { return weights != nullptr; }
  size_t choices() const { return size_t{tokens} * top_k; }
  ExpertGroups groups(const host::TaskContext& context) const {
    return ExpertGroups::At(context.shared_scratch, experts, choices());
  }
  QuantBlock* quantised_row(const host::TaskContext& context, size_t slot) const {
    return reinterpret_cast<QuantBlock*>(context.shared_scratch + quantised_at) +
           slot * QuantRowStride(x_blocks);
  }
  uint32_t* pairs_row(const host::TaskContext& context, size_t slot) const {
    return reinterpret_cast<uint32_t*>(context.shared_scratch + pairs_at) + slot * x_pairs;
  }
  float* float_row(const host::TaskContext& context, size_t slot) const {
    return reinterpret_cast<float*>(context.shared_scratch + floats_at) + slot * x_cols;
  }
};

void RunGroup(const Task& task, const host::TaskContext& context) {
  task.groups(context).Fill(task.ids, task.choices(), task.expert_begin, task.experts);
}

// A token's row of x goes to the slot of every choice; with `down` each choice has its own row.
void GatherToken(const Task& task, const host::TaskContext& context, size_t token) {
  const ExpertGroups groups = task.groups(context);
  int32_t same = -1;  // a slot that already has this row
  for (size_t choice = token * task.top_k; choice < (token + 1) * task.top_k; ++choice) {
    const int32_t slot = groups.slot_of[choice];
    if (slot < 0) continue;
    const float* x = task.x + (task.down() ? choice : token) * task.x_stride;
    if (task.floats) std::memcpy(task.float_row(context, slot), x, task.x_cols * sizeof(float));
    if (task.x_pairs > 0) RoundToBf16Pairs(x, task.x_cols, task.pairs_row(context, slot));
    if (task.x_blocks == 0) continue;
    QuantBlock* const row = task.quantised_row(context, slot);
    if (same >= 0) {
      std::memcpy(row, task.quantised_row(context, same), task.x_blocks * sizeof(QuantBlock));
      continue;
    }
    Quantizer().AddRow(x, task.x_cols, task.x_lead, task.x_blocks, row);
    if (!task.down()) same = slot;
  }
}

void RunGather(const Task& task, const host::TaskContext& context) {
  const uint32_t begin = context.task * kGatherTokens;
  const uint32_t end = std::min(begin + kGatherTokens, task.tokens);
  for (uint32_t t = begin; t < end; ++t) GatherToken(task, context, t);
}

// One expert's product of some rows, for all slots of the expert: `use(slot, values)` gets each
// slot's part of y, rows [row_begin, row_begin + row_count).
template <class Use>
void MultiplyExpert(const Task& task, const Part& part, const host::TaskContext& context,
                    uint32_t expert, uint32_t row_begin, uint32_t row_count, Use use) {
  const ExpertGroups groups = task.groups(context);
  auto* const values = reinterpret_cast<float*>(context.thread_scratch + task.outputs_at);
  for (int32_t slot = groups.first_slot[expert]; slot < groups.first_slot[expert + 1];) {
    const int32_t count = std::min(groups.first_slot[expert + 1] - slot, kMostTokens);
    const Product product = {
        .weights = part.weights + expert * part.expert_stride_bytes + row_begin * part.stride_bytes,
        .stride_bytes = part.stride_bytes,
        .in_panels = part.in_panels,
        .rows = row_count,
        .cols = part.cols,
        .x = context.shared_scratch + part.x_at + slot * part.x_row_bytes,
        .x_stride = part.x_stride,
        .bias = part.bias == nullptr ? nullptr
                                     : part.bias + size_t{expert} * part.bias_stride + row_begin,
        .y = values,
        .y_stride = part.rows_per_task,
        .scale = part.scales == nullptr ? 1.0f : part.scales[expert],
        .ahead = part.ahead,
    };
    part.run(product, {0, row_count, 0, static_cast<uint32_t>(count)}, context.thread_scratch);
    for (int32_t i = 0; i < count; ++i) use(slot + i, values + size_t(i) * part.rows_per_task);
    slot += count;
  }
}

// Tasks: parts, times experts, times rows.
void RunUp(const Task& task, const host::TaskContext& context) {
  uint32_t number = context.task;
  uint32_t i = 0;
  for (; number >= task.parts[i].row_tasks * task.experts; ++i) {
    number -= task.parts[i].row_tasks * task.experts;
  }
  const Part& part = task.parts[i];
  const uint32_t row = number % part.row_tasks * part.rows_per_task;
  const uint32_t rows = std::min(part.rows_per_task, part.rows - row);
  const int32_t* const choice_of = task.groups(context).choice_of;
  MultiplyExpert(task, part, context, number / part.row_tasks, row, rows,
                 [&](int32_t slot, const float* values) {
                   float* const y = part.y + size_t(choice_of[slot]) * part.rows + row;
                   std::copy_n(values, rows, y);
                 });
}

// Tasks: rows, of all experts in ascending order.
void RunDown(const Task& task, const host::TaskContext& context) {
  const Part& part = task.parts[0];
  const uint32_t row = context.task * part.rows_per_task;
  const uint32_t rows = std::min(part.rows_per_task, part.rows - row);
  for (size_t t = 0; t < task.tokens; ++t) std::fill_n(part.y + t * part.rows + row, rows, 0.0f);
  const int32_t* const choice_of = task.groups(context).choice_of;
  for (uint32_t expert = 0; expert < task.experts; ++expert) {
    MultiplyExpert(task, part, context, expert, row, rows, [&](int32_t slot, const float* values) {
      const int32_t choice = choice_of[slot];
      float* const y = part.y + size_t(choice) / task.top_k * part.rows + row;
      const float weight = task.weights[choice];
      for (uint32_t r = 0; r < rows; ++r) y[r] += weight * values[r];
    });
  }
}

// Small enough that every thread gets some.
uint32_t RowsPerTask(uint32_t rows, uint32_t threads) {
  return rows / 64 >= 4 * threads ? 64 : 2 * kRowAlign;
}

Part MakePart(const ExpertProjection& projection, const Kernel& kernel, uint32_t threads) {
  const Weight& weight = projection.weight;
  const Window window = WindowOf(weight);
  Part part = {};
  part.run = kernel.run;
  part.weights = FirstRow(weight, window);
  part.stride_bytes = weight.row_stride_bytes;
  part.in_panels = weight.panel_rows > 0;
  part.ahead = BestPanelAhead();
  part.expert_stride_bytes = weight.matrix_stride_bytes;
  part.scales = weight.scales;
  part.rows = weight.rows;
  part.cols = window.cols();
  part.bias = projection.bias;
  part.bias_stride = projection.bias_stride;
  part.y = projection.y;
  part.rows_per_task = RowsPerTask(weight.rows, threads);
  part.row_tasks = CeilDiv(weight.rows, part.rows_per_task);
  return part;
}

// Where the part's kernel finds its activations.
void PointAtInput(const Task& task, Activations form, size_t first_block, Part* part) {
  switch (form) {
    case Activations::kFloats:
      part->x_at = task.floats_at;
      part->x_stride = task.x_cols;
      part->x_row_bytes = part->x_stride * sizeof(float);
      break;
    case Activations::kQuantBlocks:
      part->x_at = task.quantised_at + first_block * sizeof(QuantBlock);
      part->x_stride = QuantRowStride(task.x_blocks);
      part->x_row_bytes = part->x_stride * sizeof(QuantBlock);
      break;
    case Activations::kBf16Pairs:
      part->x_at = task.pairs_at;
      part->x_stride = task.x_pairs;
      part->x_row_bytes = part->x_stride * sizeof(uint32_t);
      break;
  }
}

}  // namespace

void EncodeExpertMatMulWith(host::OpList& list, const ExpertMatMulParams& params,
                            const MatMulKernels& kernels) {
  TANDEM_CHECK(params.num_projections >= 1 &&
               params.num_projections <= (params.weights != nullptr ? 1u : 2u))
      << params.num_projections;
  CheckProjections(params);
  if (params.tokens == 0) return;
  const Weight& any = params.projections[0].weight;
  const Window all = QuantisedWindow(params);
  Task task = {};
  task.x = params.x;
  task.x_stride = params.x_stride;
  task.tokens = params.tokens;
  task.top_k = params.top_k;
  task.ids = params.ids;
  task.weights = params.weights;
  task.expert_begin = params.expert_begin;
  task.experts = params.num_experts;
  task.x_cols = any.col_count;
  task.x_blocks = QuantBlocks(all);
  task.x_lead = task.x_blocks == 0 ? 0 : any.col_begin - all.begin;

  std::array<const Kernel*, 2> kernels_of = {};
  for (uint32_t i = 0; i < params.num_projections; ++i) {
    const Weight& weight = params.projections[i].weight;
    kernels_of[i] = FindKernel(kernels, weight.type);
    TANDEM_CHECK(kernels_of[i] != nullptr) << tensor::Name(weight.type);
    CheckLayout(weight, kernels);
    task.floats |= kernels_of[i]->activations == Activations::kFloats;
    if (kernels_of[i]->activations == Activations::kBf16Pairs) {
      task.x_pairs = Bf16Pairs(task.x_cols);
    }
  }
  const size_t rows = task.choices();
  task.quantised_at = RoundToLine(ExpertGroups::Bytes(task.experts, rows));
  task.pairs_at = task.quantised_at + QuantRowsBytes(rows, task.x_blocks);
  task.floats_at = task.pairs_at + RoundToLine(rows * task.x_pairs * sizeof(uint32_t));
  const size_t shared = task.floats_at + (task.floats ? rows * task.x_cols * sizeof(float) : 0);

  uint32_t products = 0;
  uint32_t rows_per_task = 0;
  for (uint32_t i = 0; i < params.num_projections; ++i) {
    const Weight& weight = params.projections[i].weight;
    if (weight.rows == 0) continue;
    const Kernel& kernel = *kernels_of[i];
    Part& part = task.parts[task.num_parts++];
    part = MakePart(params.projections[i], kernel, list.threads());
    PointAtInput(task, kernel.activations,
                 (WindowOf(weight).begin - all.begin) / QuantBlock::kValues, &part);
    products += part.row_tasks * (task.down() ? 1 : task.experts);
    rows_per_task = std::max(rows_per_task, part.rows_per_task);
    if (params.tokens > kFewTokens) {
      task.outputs_at = std::max(task.outputs_at, RoundToLine(kernel.scratch_bytes(part.cols)));
    }
  }

  const size_t most = std::min<size_t>(rows, kMostTokens);
  list.ReserveScratch(shared, task.outputs_at + most * rows_per_task * sizeof(float));
  if (products == 0) return;
  list.Add("expert_matmul.group", 1, &RunGroup, task);
  list.Add("expert_matmul.gather", CeilDiv(params.tokens, kGatherTokens), &RunGather, task);
  list.Add("expert_matmul", products, task.down() ? &RunDown : &RunUp, task);
}

}  // namespace tandem::kernels::cpu
