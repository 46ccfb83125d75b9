#include "worker/runtime/decode_graphs.h"

#include <algorithm>
#include <bit>
#include <optional>
#include <utility>

#include "common/base/check.h"
#include "common/base/clock.h"
#include "common/base/log.h"
#include "common/base/status.h"
#include "common/model/human_bytes.h"

namespace tandem::worker {
namespace {

// Includes waiting for slower ranks.
constexpr auto kFirstRunTimeout = std::chrono::minutes(2);
// The largest step between sizes up to kEvenSizes; every size up to here has a graph.
constexpr uint32_t kSizeStep = 8;
constexpr uint32_t kEvenSizes = 64;
constexpr uint32_t kSizesPerDoubling = 8;
// Progress is logged in about this many lines.
constexpr size_t kProgressLines = 5;

// Whether all arrays that a graph points to are at the same addresses.
bool SamePlaces(const StepBuffers::Staged& a, const StepBuffers::Staged& b) {
  const auto same_group = [](const GroupBatch& x, const GroupBatch& y) {
    return x.block_tables == y.block_tables && x.slots == y.slots;
  };
  const HeadSlice& head_a = a.head.slices.at(0);
  const HeadSlice& head_b = b.head.slices.at(0);
  return a.batch.ids == b.batch.ids && a.batch.positions == b.batch.positions &&
         a.batch.query_offsets == b.batch.query_offsets &&
         a.batch.context_lens == b.batch.context_lens && a.batch.table_rows == b.batch.table_rows &&
         a.batch.states == b.batch.states &&
         std::equal(a.batch.groups.begin(), a.batch.groups.end(), b.batch.groups.begin(),
                    b.batch.groups.end(), same_group) &&
         head_a.tokens == head_b.tokens && head_a.sampling == head_b.sampling &&
         a.head.adjustments == b.head.adjustments && a.head.num_samples == b.head.num_samples;
}

// Free memory of the device; 0 where it does not say.
uint64_t FreeBytes(kernels::Backend& backend) {
  const std::optional<kernels::DeviceMemory> memory = backend.Memory();
  return memory.has_value() ? memory->free_bytes : 0;
}

// A step without sequences.
step::StepDescriptor EmptyStep(size_t num_groups) {
  step::StepDescriptor step;
  step.kind = step::StepKind::kDecode;
  step.query_offsets = {0};
  step.groups.resize(num_groups);
  return step;
}

}  // namespace

std::vector<uint32_t> GraphBatchSizes(uint32_t max_seqs) {
  std::vector<uint32_t> sizes;
  const auto step = [](uint32_t size) {
    if (size < kSizeStep) return 1u;
    return size < kEvenSizes ? kSizeStep : std::bit_floor(size) / kSizesPerDoubling;
  };
  for (uint32_t size = 1; size < max_seqs; size += step(size)) sizes.push_back(size);
  sizes.push_back(max_seqs);
  return sizes;
}

bool IsReplayable(const step::StepDescriptor& step) {
  // In a decode step every sequence has one token (step::Validate), and no token has two rows.
  return step.kind == step::StepKind::kDecode && step.rows.size() == step.num_seqs_active &&
         step.pools.empty() &&
         std::ranges::all_of(step.sequences, [](const auto& one) { return one.adapter == 0; }) &&
         std::all_of(step.rows.begin(), step.rows.end(), [](const step::RowRequest& row) {
           return (row.wants & ~step::kWantGuess) == step::kWantSample;
         });
}

void PadDecode(const step::StepDescriptor& step, uint32_t batch, step::StepDescriptor& padded) {
  TANDEM_CHECK(step.num_seqs_active <= batch) << step.num_seqs_active << " in " << batch;
  padded = step;
  for (uint32_t s = step.num_seqs_active; s < batch; ++s) {
    padded.tokens.push_back(0);
    padded.positions.push_back(0);
    padded.query_offsets.push_back(s + 1);
    padded.sequences.push_back({.slot = 0, .query_len = 1, .context_len = 0});
    for (auto& group : padded.groups) group.slot_mapping.push_back(-1);
    padded.rows.push_back({.token = s, .logprobs_of = {}});
    padded.sampling.push_back({.temperature = 0.0f, .adjustments = {}});
  }
  padded.num_scheduled_tokens = padded.num_seqs_active = batch;
}

absl::StatusOr<DecodeGraphs> DecodeGraphs::Capture(const step::StepLimits& limits,
                                                   const DeviceTables& tables, StepBuffers& buffers,
                                                   kernels::Backend& backend,
                                                   const EncodeStep& encode) {
  DecodeGraphs graphs;
  const std::vector<uint32_t> sizes = GraphBatchSizes(limits.max_seqs);
  const uint64_t free_before = FreeBytes(backend);
  const size_t lines = std::max<size_t>(1, sizes.size() / kProgressLines);
  for (size_t done = 0; done < sizes.size(); ++done) {
    if (done % lines == 0) {
      TANDEM_LOG(kInfo) << "capturing decode graphs: " << done << " of " << sizes.size();
    }
    TANDEM_RETURN_IF_ERROR(graphs.CaptureOne(sizes[sizes.size() - 1 - done], limits, tables,
                                             buffers, backend, encode));
  }
  std::reverse(graphs.entries_.begin(), graphs.entries_.end());
  const uint64_t free_after = FreeBytes(backend);
  TANDEM_LOG(kInfo) << "captured decode graphs for up to " << limits.max_seqs << " sequences in "
                    << model::HumanBytes(free_before - std::min(free_before, free_after));
  return graphs;
}

absl::Status DecodeGraphs::CaptureOne(uint32_t batch, const step::StepLimits& limits,
                                      const DeviceTables& tables, StepBuffers& buffers,
                                      kernels::Backend& backend, const EncodeStep& encode) {
  PadDecode(EmptyStep(limits.num_blocks.size()), batch, padded_);
  Entry entry{.batch = batch, .inputs = {}, .graph = nullptr};
  entry.inputs = buffers.Stage(padded_, tables);
  entry.inputs.batch.max_context_len = limits.max_model_len;

  backend.BeginEncode(kernels::EncodeMode::kRun);
  buffers.Upload(backend);
  encode(entry.inputs.batch, entry.inputs.head);
  TANDEM_RETURN_IF_ERROR(backend.SubmitAndWait(Deadline::After(kFirstRunTimeout)));

  backend.BeginEncode(kernels::EncodeMode::kCapture);
  encode(entry.inputs.batch, entry.inputs.head);
  TANDEM_ASSIGN_OR_RETURN(entry.graph, backend.graphs()->Finish());
  entries_.push_back(std::move(entry));
  return absl::OkStatus();
}

const step::StepDescriptor* DecodeGraphs::Pad(const step::StepDescriptor& step) {
  if (!IsReplayable(step)) return nullptr;
  const auto fits =
      std::lower_bound(entries_.begin(), entries_.end(), step.num_seqs_active,
                       [](const Entry& entry, uint32_t wanted) { return entry.batch < wanted; });
  if (fits == entries_.end()) return nullptr;
  PadDecode(step, fits->batch, padded_);
  return &padded_;
}

void DecodeGraphs::EncodeReplay(const StepBuffers::Staged& staged,
                                kernels::Backend& backend) const {
  const auto entry = std::find_if(entries_.begin(), entries_.end(), [&](const Entry& each) {
    return each.batch == staged.batch.num_seqs;
  });
  TANDEM_CHECK(entry != entries_.end() && SamePlaces(staged, entry->inputs))
      << "a graph's inputs moved, batch " << staged.batch.num_seqs;
  backend.graphs()->Replay(*entry->graph);
}

}  // namespace tandem::worker
