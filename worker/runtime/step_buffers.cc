#include "worker/runtime/step_buffers.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "common/base/check.h"
#include "common/base/status.h"
#include "common/step/codec.h"

namespace tandem::worker {
namespace {

constexpr size_t kAlignment = 64;

size_t Aligned(size_t bytes) { return (bytes + kAlignment - 1) / kAlignment * kAlignment; }

// All of the tables if they are few.
size_t MaxAppendedBytes(const step::StepLimits& limits) {
  return std::min<size_t>(limits.MaxAppendedBlocks() * sizeof(BlockId),
                          DeviceTables::DeviceBytes(limits));
}

// At most one per id of the vocabulary.
size_t MaxAdjustmentBytes(const step::StepLimits& limits) {
  return limits.MaxSamples() * std::min<size_t>(step::kMaxRowAdjustments, limits.vocab_size) *
         sizeof(kernels::LogitAdjustment);
}

// Rows of larger vocabularies have none.
size_t MaxMaskBytes(const step::StepLimits& limits) {
  if (limits.vocab_size > step::kMaxMaskedVocabulary) return 0;
  const size_t words = step::MaskWords(limits.vocab_size);
  return limits.MaxSamples() * Aligned(words * sizeof(uint32_t));
}

size_t StagingBytes(const step::StepLimits& limits) {
  const size_t tokens = limits.max_tokens;
  const size_t seqs = limits.max_seqs;
  const size_t groups = limits.num_blocks.size();
  return Aligned(tokens * 4) * 2 +      // ids, positions
         Aligned((seqs + 1) * 4) * 3 +  // offsets, contexts, table rows
         (limits.num_snapshots.has_value() ? Aligned(seqs * 4) * 3 : 0) +  // of states
         Aligned(tokens * 4) +                                             // rows
         groups * Aligned(tokens * 4) +                                    // slots
         Aligned(limits.MaxSamples() * sizeof(kernels::SamplingRow)) +     //
         Aligned(MaxAdjustmentBytes(limits)) +                             //
         Aligned(tokens * sizeof(kernels::LogProbsRow)) +                  //
         Aligned(tokens * step::kMaxLogprobsOf * 4) +                      //
         Aligned(groups * seqs * sizeof(kernels::ScatterRun)) +            //
         Aligned(seqs * sizeof(kernels::ScatterRun)) +                     // of references
         Aligned(limits.MaxPools() * sizeof(kernels::RowRange)) +          //
         Aligned(MaxAppendedBytes(limits)) +                               //
         MaxMaskBytes(limits);
}

size_t SampledBytes(const step::StepLimits& limits) {
  return Aligned(limits.MaxSamples() * sizeof(int32_t));
}

size_t ResultBytes(const step::StepLimits& limits) {
  return SampledBytes(limits) + 3 * Aligned(size_t{limits.max_tokens} * kMaxRowLogprobs * 4) +
         step::PooledBytes(limits.MaxPools(), limits.hidden_size);
}

// Validate holds a step to max_result_bytes, logits included.
size_t LogitsBytes(const step::StepLimits& limits) {
  const size_t all_rows = size_t{limits.max_tokens} * limits.vocab_size * sizeof(float);
  return std::max<size_t>(std::min(all_rows, limits.max_result_bytes), kAlignment);
}

// Neighbours with the same adapter are one run.
std::vector<AdapterRun> AdapterRunsOf(const step::StepDescriptor& step) {
  std::vector<AdapterRun> runs;
  for (size_t s = 0; s < step.sequences.size(); ++s) {
    const step::SequenceEntry& sequence = step.sequences[s];
    if (sequence.adapter == 0) continue;
    const AdapterRun run{step.query_offsets[s], sequence.query_len, sequence.adapter - 1};
    if (!runs.empty() && runs.back().adapter == run.adapter &&
        runs.back().first_token + runs.back().tokens == run.first_token) {
      runs.back().tokens += run.tokens;
    } else {
      runs.push_back(run);
    }
  }
  return runs;
}

// Writes rows of a step to the staging area, in order.
struct HeadWriter {
  explicit HeadWriter(const step::StepDescriptor& descriptor) : step(descriptor) {}

  // Adds row `i` to `slice`.
  void Write(uint32_t i, HeadSlice& slice) {
    const step::RowRequest& row = step.rows[slice.first_row + i];
    tokens[slice.first_row + i] = static_cast<int32_t>(row.token);
    if (step::NumLogprobs(row) > 0) WriteLogprobs(row, i, slice);
    if ((row.wants & step::kWantSample) != 0) WriteSampling(i, slice);
  }

  void WriteLogprobs(const step::RowRequest& row, uint32_t i, HeadSlice& slice) {
    const bool of_sample = (row.wants & step::kWantSampleLogprob) != 0;
    const int32_t begin = ids_end;
    ids_end += static_cast<int32_t>(row.logprobs_of.size());
    std::copy(row.logprobs_of.begin(), row.logprobs_of.end(), ids + begin);
    const uint32_t sample = slice.first_sample + slice.num_samples;
    *logprob_rows++ = {.logits_row = static_cast<int32_t>(i),
                       .sample = of_sample ? static_cast<int32_t>(sample) : -1,
                       .ids_begin = begin,
                       .ids_end = ids_end,
                       .top_n = row.top_n,
                       .out_begin = slice.num_logprobs};
    ++slice.num_logprob_rows;
    slice.num_logprobs += step::NumLogprobs(row);
  }

  void WriteSampling(uint32_t i, HeadSlice& slice) {
    const step::RowSampling& wanted = step.sampling[slice.first_sample + slice.num_samples];
    const int32_t begin = adjustments_end;
    adjustments_end += static_cast<int32_t>(wanted.adjustments.size());
    for (const step::LogitAdjustment& one : wanted.adjustments) {
      *adjustments++ = {one.id, one.bias, one.repetition, one.penalty};
    }
    *sampling++ = {.temperature = wanted.temperature,
                   .top_p = wanted.top_p,
                   .min_p = wanted.min_p,
                   .top_k = wanted.top_k,
                   .seed = wanted.seed,
                   .position = wanted.position,
                   .logits_row = static_cast<int32_t>(i),
                   .adjustments_begin = begin,
                   .adjustments_end = adjustments_end,
                   .typical_p = wanted.typical_p,
                   .xtc_probability = wanted.xtc_probability,
                   .xtc_threshold = wanted.xtc_threshold};
    ++slice.num_samples;
  }

  const step::StepDescriptor& step;
  // Host memory.
  int32_t* tokens = nullptr;
  kernels::SamplingRow* sampling = nullptr;
  kernels::LogProbsRow* logprob_rows = nullptr;
  kernels::LogitAdjustment* adjustments = nullptr;
  int32_t* ids = nullptr;
  int32_t adjustments_end = 0;
  int32_t ids_end = 0;
};

}  // namespace

absl::StatusOr<StepBuffers> StepBuffers::Create(const step::StepLimits& limits,
                                                kernels::Backend& backend,
                                                const StepBuffers* shared) {
  StepBuffers buffers;
  buffers.limits_ = limits;
  if (shared != nullptr) {
    buffers.device_ = shared->device_;
    buffers.results_ = shared->results_;
  } else {
    TANDEM_ASSIGN_OR_RETURN(kernels::Buffer device, backend.Allocate(StagingBytes(limits)));
    TANDEM_ASSIGN_OR_RETURN(kernels::Buffer results, backend.Allocate(ResultBytes(limits)));
    buffers.device_ = std::make_shared<const kernels::Buffer>(std::move(device));
    buffers.results_ = std::make_shared<const kernels::Buffer>(std::move(results));
  }
  TANDEM_ASSIGN_OR_RETURN(buffers.staging_, backend.AllocateHost(StagingBytes(limits)));
  TANDEM_ASSIGN_OR_RETURN(buffers.host_results_, backend.AllocateHost(ResultBytes(limits)));
  TANDEM_ASSIGN_OR_RETURN(buffers.host_logits_, backend.AllocateHost(LogitsBytes(limits)));
  return buffers;
}

uint64_t StepBuffers::DeviceBytes(const step::StepLimits& limits) {
  return StagingBytes(limits) + ResultBytes(limits);
}

template <typename T>
T* StepBuffers::Append(size_t count, T** host) {
  const size_t begin = used_;
  used_ += Aligned(count * sizeof(T));
  TANDEM_CHECK(used_ <= staging_.bytes()) << "step of " << used_ << " input bytes";
  *host = reinterpret_cast<T*>(staging_.data() + begin);
  return reinterpret_cast<T*>(device_->data() + begin);
}

template <typename T>
T* StepBuffers::AppendCopy(std::span<const T> values) {
  T* host = nullptr;
  T* device = Append<T>(values.size(), &host);
  if (!values.empty()) std::memcpy(host, values.data(), values.size_bytes());
  return device;
}

kernels::ScatterRunsParams StepBuffers::StageTableUpdate(const step::StepDescriptor& step,
                                                         const DeviceTables& tables) {
  size_t num_runs = 0, num_blocks = 0;
  for (const auto& group : step.groups) {
    for (const auto& delta : group.tables) num_runs += delta.num_appended() > 0 ? 1 : 0;
    num_blocks += group.blocks.size();
  }
  kernels::ScatterRun* run = nullptr;
  int32_t* blocks = nullptr;
  const kernels::ScatterRunsParams update = {.runs = Append<kernels::ScatterRun>(num_runs, &run),
                                             .num_runs = static_cast<uint32_t>(num_runs),
                                             .values = Append<int32_t>(num_blocks, &blocks),
                                             .num_values = static_cast<uint32_t>(num_blocks),
                                             .out = tables.data(),
                                             .out_size = tables.size()};
  uint32_t from = 0;
  for (size_t g = 0; g < step.groups.size(); ++g) {
    const step::GroupDeltas& group = step.groups[g];
    for (size_t s = 0; s < group.tables.size(); ++s) {  // padded sequences have none
      const step::TableDelta& delta = group.tables[s];
      const uint32_t count = delta.num_appended();
      if (count == 0) continue;
      const size_t row = tables.Row(g, step.sequences[s].slot);
      *run++ = {.to = row + delta.first_appended(), .from = from, .count = count};
      from += count;
    }
    blocks = std::copy(group.blocks.begin(), group.blocks.end(), blocks);
  }
  return update;
}

// Neighbours that refer to neighbours, as in most decode steps, are one run.
kernels::ScatterRunsParams StepBuffers::StageTokenUpdate(const step::StepDescriptor& step) {
  std::vector<kernels::ScatterRun>& runs = token_runs_;
  runs.clear();
  for (const step::TokenReference& reference : step.references) {
    if (!runs.empty() && runs.back().to + runs.back().count == reference.token &&
        runs.back().from + runs.back().count == reference.sample) {
      ++runs.back().count;
    } else {
      runs.push_back({.to = reference.token, .from = reference.sample, .count = 1});
    }
  }
  return {.runs = AppendCopy<kernels::ScatterRun>(runs),
          .num_runs = static_cast<uint32_t>(runs.size()),
          .values = sampled(),
          .num_values = limits_.MaxSamples(),
          .out = ids_,
          .out_size = step.tokens.size()};
}

// Of the staged rows, each behind the one before; rows that allow every id have none.
void StepBuffers::StageMasks(const step::StepDescriptor& step, kernels::SamplingRow* rows) {
  for (size_t i = 0; i < step.sampling.size(); ++i) {
    const step::TokenMask& mask = step.sampling[i].allowed;
    if (mask.empty()) continue;
    rows[i].mask_begin = static_cast<int32_t>(used_ / sizeof(uint32_t));
    AppendCopy<uint32_t>(mask);
  }
}

HeadBatch StepBuffers::StageHead(const step::StepDescriptor& step) {
  size_t num_adjustments = 0, num_ids = 0;
  for (const auto& row : step.sampling) num_adjustments += row.adjustments.size();
  for (const auto& row : step.rows) num_ids += row.logprobs_of.size();
  HeadWriter writer(step);
  HeadBatch batch;
  HeadSlice next;  // begins after the rows staged so far
  next.tokens = Append<int32_t>(step.rows.size(), &writer.tokens);
  next.sampling = Append<kernels::SamplingRow>(step.sampling.size(), &writer.sampling);
  kernels::SamplingRow* const sampling_rows = writer.sampling;
  next.logprob_rows = Append<kernels::LogProbsRow>(step.rows.size(), &writer.logprob_rows);
  batch.adjustments = Append<kernels::LogitAdjustment>(num_adjustments, &writer.adjustments);
  batch.logprob_ids = Append<int32_t>(num_ids, &writer.ids);
  const uint32_t slice_rows = HeadSliceRows(limits_.max_seqs, limits_.max_tokens);
  while (next.first_row < step.rows.size()) {
    HeadSlice slice = next;
    slice.num_rows =
        std::min(slice_rows, static_cast<uint32_t>(step.rows.size()) - slice.first_row);
    for (uint32_t i = 0; i < slice.num_rows; ++i) writer.Write(i, slice);
    batch.slices.push_back(slice);
    next.first_row += slice.num_rows;
    next.tokens += slice.num_rows;
    next.first_sample += slice.num_samples;
    next.sampling += slice.num_samples;
    next.logprob_rows += slice.num_logprob_rows;
    next.first_logprob += slice.num_logprobs;
  }
  StageMasks(step, sampling_rows);
  batch.masks = reinterpret_cast<const uint32_t*>(device_->data());
  batch.num_samples = next.first_sample;
  batch.num_logprobs = next.first_logprob;
  num_logprobs_ = next.first_logprob;
  kernels::RowRange* pool = nullptr;
  batch.num_pools = static_cast<uint32_t>(step.pools.size());
  batch.pools = Append<kernels::RowRange>(step.pools.size(), &pool);
  for (const step::PoolRequest& wanted : step.pools) *pool++ = {wanted.begin, wanted.end};
  num_pools_ = step.pools.size();
  return batch;
}

Batch StepBuffers::StageBatch(const step::StepDescriptor& step, const DeviceTables& tables) {
  Batch batch;
  batch.tokens = step.num_scheduled_tokens;
  batch.num_seqs = step.num_seqs_active;
  batch.ids = ids_ = AppendCopy<int32_t>(step.tokens);
  batch.positions = AppendCopy<int32_t>(step.positions);
  int32_t* offsets = nullptr;
  int32_t* contexts = nullptr;
  int32_t* table_rows = nullptr;
  batch.query_offsets = Append<int32_t>(batch.num_seqs + 1, &offsets);
  batch.context_lens = Append<int32_t>(batch.num_seqs, &contexts);
  batch.table_rows = Append<int32_t>(batch.num_seqs, &table_rows);
  batch.table_stride = tables.stride();
  std::copy(step.query_offsets.begin(), step.query_offsets.end(), offsets);
  for (const auto& sequence : step.sequences) {
    *contexts++ = static_cast<int32_t>(sequence.context_len);
    *table_rows++ = static_cast<int32_t>(sequence.slot);
    batch.max_query_len = std::max(batch.max_query_len, sequence.query_len);
    batch.max_context_len = std::max(batch.max_context_len, sequence.context_len);
  }
  batch.adapter_runs = AdapterRunsOf(step);
  batch.states = StageStates(step);
  for (size_t g = 0; g < step.groups.size(); ++g) {
    batch.groups.push_back({.block_tables = tables.data() + tables.Row(g, 0),
                            .slots = AppendCopy<int32_t>(step.groups[g].slot_mapping)});
  }
  return batch;
}

BatchStates StepBuffers::StageStates(const step::StepDescriptor& step) {
  if (!limits_.num_snapshots.has_value()) return {};
  BatchStates states{.num_slots = limits_.NumStates()};
  int32_t *load = nullptr, *save = nullptr, *after = nullptr;
  states.load_slots = Append<int32_t>(step.sequences.size(), &load);
  states.save_slots = Append<int32_t>(step.sequences.size(), &save);
  states.save_after = Append<int32_t>(step.sequences.size(), &after);
  const auto snapshots = static_cast<int32_t>(limits_.max_seqs);  // after the sequences' slots
  for (const auto& sequence : step.sequences) {
    const auto own = static_cast<int32_t>(sequence.slot);
    const bool loads = sequence.load_snapshot != kv::kNoSnapshot;
    const bool saves = sequence.save_snapshot != kv::kNoSnapshot;
    *load++ = loads ? snapshots + sequence.load_snapshot : own;
    *save++ = saves ? snapshots + sequence.save_snapshot : own;
    *after++ = static_cast<int32_t>(sequence.save_after);
  }
  return states;
}

StepBuffers::Staged StepBuffers::Stage(const step::StepDescriptor& step,
                                       const DeviceTables& tables) {
  used_ = 0;
  logits_taken_ = 0;
  Staged staged;
  staged.batch = StageBatch(step, tables);
  staged.head = StageHead(step);
  staged.table_update = StageTableUpdate(step, tables);
  staged.token_update = StageTokenUpdate(step);
  return staged;
}

void StepBuffers::Upload(kernels::Backend& backend) {
  backend.Upload(device_->data(), staging_.data(), used_);
}

LogprobArrays StepBuffers::LogprobsIn(const kernels::Buffer& results) const {
  std::byte* const ids = results.data() + SampledBytes(limits_);
  const size_t array_bytes = Aligned(num_logprobs_ * 4);
  return {.ids = reinterpret_cast<int32_t*>(ids),
          .logprobs = reinterpret_cast<float*>(ids + array_bytes),
          .ranks = reinterpret_cast<int32_t*>(ids + 2 * array_bytes)};
}

double* StepBuffers::PooledIn(const kernels::Buffer& results) const {
  return reinterpret_cast<double*>(results.data() + SampledBytes(limits_) +
                                   3 * Aligned(num_logprobs_ * 4));
}

void StepBuffers::DownloadResults(bool all, kernels::Backend& backend) {
  size_t bytes = SampledBytes(limits_);
  if (all) {
    bytes += 3 * Aligned(num_logprobs_ * 4) + step::PooledBytes(num_pools_, limits_.hidden_size);
  }
  backend.Download(host_results_.data(), results_->data(), bytes);
}

void StepBuffers::DownloadLogits(const float* from, size_t count, kernels::Backend& backend) {
  float* const to = reinterpret_cast<float*>(host_logits_.data()) + logits_taken_;
  logits_taken_ += count;
  TANDEM_CHECK(logits_taken_ * sizeof(float) <= host_logits_.bytes())
      << "step of " << logits_taken_ << " logits";
  backend.Download(to, from, count * sizeof(float));
}

step::TokenLogprob StepBuffers::Logprob(size_t index) const {
  const LogprobArrays all = LogprobsIn(host_results_);
  return {.token = all.ids[index],
          .logprob = all.logprobs[index],
          .rank = static_cast<uint32_t>(all.ranks[index])};
}

}  // namespace tandem::worker
