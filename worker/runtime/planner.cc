#include "worker/runtime/planner.h"

#include <algorithm>
#include <memory>
#include <optional>

#include "absl/strings/str_cat.h"
#include "common/base/status.h"
#include "common/kv/kv_shape.h"
#include "common/kv/snapshot_interval.h"
#include "common/model/kv_cache_type.h"
#include "worker/runtime/decode_graphs.h"
#include "worker/runtime/device_tables.h"
#include "worker/runtime/kv_cache.h"
#include "worker/runtime/recurrent_states.h"
#include "worker/runtime/shape_backend.h"
#include "worker/runtime/step_buffers.h"
#include "worker/runtime/step_encoder.h"

namespace tandem::worker {
namespace {

// The inputs of a plan.
struct Subject {
  const model::ModelSpec& spec;
  const model::ShardPlan& shard;
  const Decoder& decoder;
  const DraftHead* draft_head;  // null: none is loaded
  tensor::Type activation_type;
  uint64_t weight_bytes;
  const std::optional<kernels::DeviceMemory>& device_memory;
  kernels::Backend& counting;  // encodes the plan pass
};

// The largest batch that the options allow, as shapes without data.
Batch LargestBatch(const RunnerOptions& options, size_t num_groups) {
  const config::LimitsConfig& limits = options.config.limits;
  Batch batch;
  batch.tokens = limits.max_num_batched_tokens;
  batch.num_seqs = std::min(limits.max_num_seqs, batch.tokens);
  batch.max_context_len = options.config.model.spec.max_model_len;
  batch.max_query_len = std::min(batch.tokens, batch.max_context_len);
  batch.states.num_slots = limits.max_num_seqs;
  batch.groups.resize(num_groups);
  return batch;
}

// The largest slice of the head, likewise.
HeadBatch LargestHead(const RunnerOptions& options) {
  HeadSlice slice;
  slice.num_rows = HeadSliceRows(options.config.limits.max_num_seqs,
                                 options.config.limits.max_num_batched_tokens);
  slice.num_samples = step::StepLimits::Of(options.config).MaxSamples();
  slice.num_logprob_rows = slice.num_rows;
  slice.num_logprobs = slice.num_rows * kMaxRowLogprobs;
  HeadBatch head;
  head.slices = {slice};
  head.num_samples = slice.num_samples;
  return head;
}

absl::Status CheckOptions(const RunnerOptions& options, const model::ModelSpec& spec) {
  auto positive = [](uint64_t value, const char* what) {
    return value > 0 ? absl::OkStatus()
                     : absl::InvalidArgumentError(absl::StrCat(what, " must be positive, got 0"));
  };
  TANDEM_RETURN_IF_ERROR(positive(options.config.cache.block_size, "block size"));
  TANDEM_RETURN_IF_ERROR(positive(options.config.limits.max_num_seqs, "max-num-seqs"));
  TANDEM_RETURN_IF_ERROR(
      positive(options.config.limits.max_num_batched_tokens, "max-num-batched-tokens"));
  TANDEM_RETURN_IF_ERROR(positive(options.config.model.spec.max_model_len, "max-model-len"));
  if (options.config.model.spec.max_model_len > spec.context_length) {
    return absl::InvalidArgumentError(
        absl::StrCat("max-model-len ", options.config.model.spec.max_model_len,
                     " exceeds the model's context length ", spec.context_length));
  }
  return model::CheckKvCacheType(spec, options.config.cache.kv_cache_type);
}

// The draft head on every token of a batch, beside the model's states and those that it reads.
void CountDraft(const DraftHead& draft, LayerContext& context, const Batch& batch,
                const HeadBatch& head, const std::vector<kernels::KvPages>& pages,
                uint32_t hidden_size) {
  const size_t values = size_t{batch.tokens} * hidden_size;
  context.arena.TakeActivations(values);
  Hidden hidden = draft.Encode(context, batch, context.arena.TakeActivations(values), pages);
  draft.output().EncodeStates(context, batch.tokens, hidden);
  draft.output().EncodeLogits(context, hidden, /*rows=*/nullptr, head.slices[0].num_rows);
}

// Bytes of activations and of kernel scratch of the largest step, and of the graphs of decode steps
// where the counting backend has graphs.
absl::Status CountActivations(const Subject& model, const RunnerOptions& options,
                              RunnerPlan& plan) {
  const StepEncoder encoder(model.decoder, model.spec, model.shard);
  const auto pages = ShapeOnlyPages(model.spec, model.shard, options);
  const std::vector<LayerStates> states(model.spec.num_layers);
  model.counting.BeginEncode(kernels::EncodeMode::kPlan);
  const auto count = [&](const Batch& batch, const HeadBatch& head) {
    Arena arena(model.activation_type);
    LayerContext context{.backend = model.counting, .comm = nullptr, .arena = arena};
    encoder.Encode(context, batch, head, pages, states, {});
    if (model.draft_head != nullptr) {
      CountDraft(*model.draft_head, context, batch, head, pages, model.spec.hidden_size);
    }
    plan.activation_bytes = std::max<uint64_t>(plan.activation_bytes, arena.peak());
  };
  const Batch largest = LargestBatch(options, model.spec.kv_groups.size());
  const HeadBatch head = LargestHead(options);
  count(largest, head);
  HeadBatch pooling = head;
  pooling.num_pools = 1;
  count(largest, pooling);
  // Plans decode too: its shape is not a smaller prefill, but few rows, each with a whole context.
  const kernels::GraphCapture* const graphs =
      options.config.device.enforce_eager ? nullptr : model.counting.graphs();
  const uint64_t nodes_before = graphs == nullptr ? 0 : graphs->PlannedNodes();
  for (const uint32_t size : GraphBatchSizes(largest.num_seqs)) {
    Batch decode = largest;
    decode.tokens = decode.num_seqs = size;
    decode.max_query_len = 1;
    HeadBatch rows = head;
    rows.num_samples = rows.slices[0].num_samples = rows.slices[0].num_rows = size;
    rows.slices[0].num_logprob_rows = rows.slices[0].num_logprobs = 0;
    count(decode, rows);
  }
  if (graphs != nullptr) {
    plan.graph_bytes = (graphs->PlannedNodes() - nodes_before) * kGraphNodeBytes;
  }
  TANDEM_ASSIGN_OR_RETURN(plan.workspace_bytes, model.counting.FinishPlan());
  return absl::OkStatus();
}

absl::StatusOr<RunnerPlan> MakePlan(const Subject& model, const RunnerOptions& options) {
  TANDEM_RETURN_IF_ERROR(CheckOptions(options, model.spec));
  RunnerPlan plan;
  plan.weights_bytes = model.weight_bytes;
  if (const auto& memory = model.device_memory; memory.has_value()) {
    plan.device = {.total_bytes = memory->total_bytes,
                   .free_bytes = memory->free_bytes,
                   .utilization = options.config.device.gpu_memory_utilization};
  }
  TANDEM_RETURN_IF_ERROR(CountActivations(model, options, plan));
  plan.kv = kv::MakeKvShape(model.spec, model.shard, options.config);
  const step::StepLimits limits = LimitsFor(model.spec, options, plan.kv.NumBlocks(0));
  plan.buffers_bytes = StepBuffers::DeviceBytes(limits);
  plan.table_bytes = DeviceTables::DeviceBytes(limits);
  plan.state_slots = options.config.limits.max_num_seqs;
  plan.state_bytes = RecurrentStates::Bytes(model.spec, model.shard, plan.state_slots);
  TANDEM_RETURN_IF_ERROR(SizeKvCache(options, plan));
  return plan;
}

}  // namespace

absl::StatusOr<RunnerPlan> MakePlan(const DescribedModel& model, const RunnerOptions& options) {
  const std::unique_ptr<kernels::Backend> shapes = MakeShapeBackend();
  const ModelParts parts{.spec = model.spec, .plan = model.plan, .weights = *model.shapes};
  const Decoder decoder(parts, model.vocab_starts);
  std::optional<DraftHead> draft_head;
  if (model.spec.has_draft_head) draft_head.emplace(parts, model.vocab_starts);
  return MakePlan(Subject{.spec = model.spec,
                          .shard = model.plan,
                          .decoder = decoder,
                          .draft_head = draft_head.has_value() ? &*draft_head : nullptr,
                          .activation_type = model.activation_type,
                          .weight_bytes = model.shapes->bytes(),
                          .device_memory = model.device_memory,
                          .counting = *shapes},
                  options);
}

absl::StatusOr<RunnerPlan> MakePlan(LoadedModel& model, const RunnerOptions& options) {
  return MakePlan(Subject{.spec = model.spec(),
                          .shard = model.plan(),
                          .decoder = model.decoder(),
                          .draft_head = model.draft_head(),
                          .activation_type = model.activation_type(),
                          .weight_bytes = model.weight_bytes(),
                          .device_memory = model.device_memory(),
                          .counting = model.backend()},
                  options);
}

step::StepLimits LimitsFor(const model::ModelSpec& spec, const RunnerOptions& options,
                           const std::vector<uint32_t>& num_blocks) {
  auto limits = step::StepLimits::Of(options.config);
  limits.vocab_size = spec.vocab_size;
  limits.hidden_size = spec.hidden_size;
  limits.num_blocks = num_blocks;
  for (const auto& group : spec.kv_groups) {
    limits.windows.emplace_back(group.window_tokens, group.chunked);
  }
  if (spec.delta_net.has_value()) {
    limits.num_snapshots = kv::NumSnapshots(num_blocks, options.config.cache);
  }
  return limits;
}

}  // namespace tandem::worker
