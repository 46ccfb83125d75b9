#include "worker/runtime/planner.h"

#include <algorithm>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/base/status.h"
#include "common/kv/kv_shape.h"
#include "common/kv/snapshot_interval.h"
#include "common/model/kv_cache_type.h"
#include "worker/runtime/decode_graphs.h"
#include "worker/runtime/device_tables.h"
#include "worker/runtime/draft_buffers.h"
#include "worker/runtime/draft_head_encoder.h"
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
  const RankAdapters& adapters;
  tensor::Type activation_type;
  uint64_t weight_bytes;
  const std::optional<kernels::DeviceMemory>& device_memory;
  kernels::Backend& counting;      // encodes the plan pass
  const Subject* draft = nullptr;  // the draft model, with the same backend; null: there is none
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

struct StepShape {
  Batch batch;
  HeadBatch head;
};

// Steps of half as many tokens, of a quarter, and so on. They need no more memory; but a plan pass
// loads kernels and looks up products' algorithms, which differ between numbers of tokens, and a
// step would do so within its deadline.
std::vector<StepShape> SmallerShapes(const Batch& largest, const HeadBatch& head) {
  std::vector<StepShape> shapes;
  for (uint32_t tokens = largest.tokens / 2; tokens > 0; tokens /= 2) {
    StepShape& smaller = shapes.emplace_back(StepShape{largest, head});
    smaller.batch.tokens = tokens;
    smaller.batch.num_seqs = std::min(largest.num_seqs, tokens);
    smaller.batch.max_query_len = std::min(largest.max_query_len, tokens);
    HeadSlice& slice = smaller.head.slices[0];
    slice.num_rows = std::min(slice.num_rows, tokens);
    smaller.head.num_samples = slice.num_samples = std::min(slice.num_samples, slice.num_rows);
    slice.num_logprob_rows = slice.num_logprobs = 0;
  }
  return shapes;
}

// Decode steps, of which each size is a graph's. They are no smaller prefills: few rows, each with
// a whole context.
std::vector<StepShape> DecodeShapes(const Batch& largest, const HeadBatch& head) {
  std::vector<StepShape> shapes;
  for (const uint32_t size : GraphBatchSizes(largest.num_seqs)) {
    StepShape& decode = shapes.emplace_back(StepShape{largest, head});
    decode.batch.tokens = decode.batch.num_seqs = size;
    decode.batch.max_query_len = 1;
    HeadSlice& slice = decode.head.slices[0];
    decode.head.num_samples = slice.num_samples = slice.num_rows = size;
    slice.num_logprob_rows = slice.num_logprobs = 0;
  }
  return shapes;
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

bool RunsDraftHead(const Subject& model) {
  return model.draft_head != nullptr && model.draft == nullptr;
}

float no_states;  // stands for where states would be: a plan pass reads and writes nothing

// Encodes the draft model in a step of the model.
void EncodeDraftModel(const Subject& draft, const RunnerOptions& options, const StepShape& shape,
                      LayerContext& context) {
  Batch batch = shape.batch;
  batch.groups.resize(1);
  batch.states = {};
  StepEncoder(draft.decoder, draft.spec, draft.shard)
      .Encode(context, batch, shape.head, ShapeOnlyPages(draft.spec, draft.shard, options),
              std::vector<LayerStates>(draft.spec.num_layers), {});
}

// Encodes the draft head, likewise.
void EncodeDraftHead(const Subject& model, const RunnerOptions& options, const StepShape& shape,
                     LayerContext& context) {
  const StepEncoder encoder(model.decoder, model.spec, model.shard);
  const DraftPass pass{.batch = shape.batch, .head = shape.head, .own_states = &no_states};
  DraftHeadEncoder(*model.draft_head, encoder, model.spec.hidden_size)
      .Encode(context, pass, ShapeOnlyPages(model.spec, model.shard, options));
}

// Bytes of activations of the guesser on the model's largest steps, which are no smaller than its
// own. It runs outside of graphs.
uint64_t CountGuesser(const Subject& model, const RunnerOptions& options,
                      const std::vector<StepShape>& shapes) {
  uint64_t bytes = 0;
  for (const StepShape& shape : shapes) {
    Arena arena(model.activation_type);
    LayerContext context{.backend = model.counting, .comm = nullptr, .arena = arena};
    if (model.draft != nullptr) {
      EncodeDraftModel(*model.draft, options, shape, context);
    } else if (RunsDraftHead(model)) {
      EncodeDraftHead(model, options, shape, context);
    }
    bytes = std::max<uint64_t>(bytes, arena.peak());
  }
  return bytes;
}

// Bytes of activations and of kernel scratch of the largest step, and of the graphs of decode steps
// where the counting backend has graphs. Ops' kernels are loaded as they are counted.
absl::Status CountActivations(const Subject& model, const RunnerOptions& options,
                              RunnerPlan& plan) {
  const StepEncoder encoder(model.decoder, model.spec, model.shard);
  const auto pages = ShapeOnlyPages(model.spec, model.shard, options);
  const std::vector<LayerStates> states(model.spec.num_layers);
  model.counting.BeginEncode(kernels::EncodeMode::kPlan);
  const auto count = [&](const Batch& batch, const HeadBatch& head) {
    Arena arena(model.activation_type);
    LayerContext context{.backend = model.counting, .comm = nullptr, .arena = arena};
    encoder.Encode(context, batch, head, pages, states,
                   {.states = RunsDraftHead(model) ? &no_states : nullptr});
    plan.activation_bytes = std::max<uint64_t>(plan.activation_bytes, arena.peak());
  };
  const Batch largest = LargestBatch(options, model.spec.kv_groups.size());
  const HeadBatch head = LargestHead(options);
  count(largest, head);
  HeadBatch pooling = head;
  pooling.num_pools = 1;
  count(largest, pooling);
  for (const StepShape& smaller : SmallerShapes(largest, head)) count(smaller.batch, smaller.head);
  const kernels::GraphCapture* const graphs =
      options.config.device.enforce_eager ? nullptr : model.counting.graphs();
  const uint64_t nodes_before = graphs == nullptr ? 0 : graphs->PlannedNodes();
  std::vector<StepShape> shapes = DecodeShapes(largest, head);
  for (const StepShape& decode : shapes) count(decode.batch, decode.head);
  if (graphs != nullptr) {
    plan.graph_bytes = (graphs->PlannedNodes() - nodes_before) * kGraphNodeBytes;
  }
  shapes.push_back({largest, head});
  for (const StepShape& shape : shapes) {
    Batch adapted = shape.batch;
    for (uint32_t adapter = 0; adapter < model.adapters.count(); ++adapter) {
      adapted.adapter_runs = {{.first_token = 0, .tokens = adapted.tokens, .adapter = adapter}};
      count(adapted, shape.head);
    }
  }
  plan.activation_bytes = std::max(plan.activation_bytes, CountGuesser(model, options, shapes));
  TANDEM_ASSIGN_OR_RETURN(plan.workspace_bytes, model.counting.FinishPlan());
  return absl::OkStatus();
}

absl::StatusOr<RunnerPlan> MakePlan(const Subject& model, const RunnerOptions& options) {
  TANDEM_RETURN_IF_ERROR(CheckOptions(options, model.spec));
  if (model.draft != nullptr) {
    TANDEM_RETURN_IF_ERROR(Annotate(CheckOptions(options, model.draft->spec), "the draft model"));
  }
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
  if (model.draft != nullptr) {
    kv::AddDraftModel(model.draft->spec, model.draft->shard, options.config, plan.kv);
    plan.buffers_bytes += DraftBuffers::DeviceBytes(limits, /*reads_states=*/false);
  } else if (RunsDraftHead(model)) {
    plan.buffers_bytes += DraftBuffers::DeviceBytes(limits, /*reads_states=*/true);
  }
  plan.table_bytes = DeviceTables::DeviceBytes(limits);
  plan.state_slots = options.config.limits.max_num_seqs;
  plan.state_bytes = RecurrentStates::Bytes(model.spec, model.shard, plan.state_slots);
  TANDEM_RETURN_IF_ERROR(SizeKvCache(options, plan));
  return plan;
}

// What runs a described model, on shapes alone.
struct Shapes {
  explicit Shapes(const DescribedModel& model)
      : parts{.spec = model.spec,
              .plan = model.plan,
              .weights = *model.shapes,
              .adapters = model.adapter_shapes},
        decoder(parts, model.vocab_starts) {
    if (model.spec.has_draft_head) draft_head.emplace(parts, model.vocab_starts);
  }

  const ModelParts parts;
  const Decoder decoder;
  std::optional<DraftHead> draft_head;
};

Subject SubjectOf(const DescribedModel& model, const Shapes& shapes, kernels::Backend& counting) {
  return {.spec = model.spec,
          .shard = model.plan,
          .decoder = shapes.decoder,
          .draft_head = shapes.draft_head.has_value() ? &*shapes.draft_head : nullptr,
          .adapters = model.adapter_shapes,
          .activation_type = model.activation_type,
          .weight_bytes = model.shapes->PlacedBytes(*model.backend) +
                          model.adapter_shapes.PlacedBytes(*model.backend),
          .device_memory = model.device_memory,
          .counting = counting};
}

Subject SubjectOf(const LoadedModel& model, kernels::Backend& counting) {
  return {.spec = model.spec(),
          .shard = model.plan(),
          .decoder = model.decoder(),
          .draft_head = model.draft_head(),
          .adapters = model.adapters(),
          .activation_type = model.activation_type(),
          .weight_bytes = model.placed_weight_bytes(),
          .device_memory = model.device_memory(),
          .counting = counting};
}

}  // namespace

absl::StatusOr<RunnerPlan> MakePlan(const DescribedModel& model, const RunnerOptions& options) {
  const std::unique_ptr<kernels::Backend> shapes = MakeShapeBackend();
  const Shapes of_model(model);
  std::optional<Shapes> of_draft;
  std::optional<Subject> draft;
  if (model.draft != nullptr) {
    of_draft.emplace(*model.draft);
    draft.emplace(SubjectOf(*model.draft, *of_draft, *shapes));
  }
  Subject subject = SubjectOf(model, of_model, *shapes);
  subject.draft = draft.has_value() ? &*draft : nullptr;
  subject.weight_bytes += draft.has_value() ? draft->weight_bytes : 0;
  return MakePlan(subject, options);
}

absl::StatusOr<RunnerPlan> MakePlan(LoadedModel& model, const RunnerOptions& options) {
  Subject subject = SubjectOf(model, model.backend());
  if (model.draft() == nullptr) return MakePlan(subject, options);
  const Subject draft = SubjectOf(*model.draft(), model.backend());
  subject.draft = &draft;
  return MakePlan(subject, options);
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
