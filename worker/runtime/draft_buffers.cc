#include "worker/runtime/draft_buffers.h"

#include <algorithm>
#include <utility>

#include "common/base/check.h"
#include "common/base/status.h"

namespace tandem::worker {

// A step has few drafts, so there is room for every pass with all of them.
struct DraftBuffers::Inputs {
  static constexpr uint32_t kMost = step::kMaxDraftRows;
  struct Pass {
    alignas(64) int32_t positions[kMost];
    alignas(64) int32_t context_lens[kMost];
    alignas(64) int32_t slots[kMost];
  };
  alignas(64) int32_t ids[kMost];  // of the first pass
  alignas(64) int32_t query_offsets[kMost + 1];
  alignas(64) int32_t table_rows[kMost];
  alignas(64) int32_t rows[kMost];  // 0, 1, ...
  alignas(64) kernels::ScatterRun runs[kMost];
  Pass passes[kMost];
};

namespace {

constexpr size_t kAlignment = 64;

size_t Aligned(size_t bytes) { return (bytes + kAlignment - 1) / kAlignment * kAlignment; }

uint32_t MaxGuesses(const step::StepLimits& limits) {
  return std::max(limits.MaxSamples(), step::kMaxDraftRows);
}

size_t GreedyBytes(const step::StepLimits& limits) {
  return Aligned(MaxGuesses(limits) * sizeof(kernels::SamplingRow));
}

size_t ResultBytes(const step::StepLimits& limits) {
  return (step::kMaxDraftRows + MaxGuesses(limits)) * sizeof(int32_t);
}

// `field` of the host's inputs at its place in the device's.
template <typename T, typename Inputs>
const T* Placed(const T* field, const Inputs& host, const std::byte* device) {
  return reinterpret_cast<const T*>(device + (reinterpret_cast<const std::byte*>(field) -
                                              reinterpret_cast<const std::byte*>(&host)));
}

}  // namespace

absl::StatusOr<DraftBuffers> DraftBuffers::Create(const step::StepLimits& limits,
                                                  const DraftBuffersOptions& options,
                                                  kernels::Backend& backend,
                                                  const DraftBuffers* shared) {
  const size_t results = ResultBytes(limits);
  const size_t inputs = DeviceBytes(limits, /*reads_states=*/false) - results;
  DraftBuffers buffers;
  buffers.limits_ = limits;
  buffers.options_ = options;
  if (options.reads_states) {
    const DraftStates* const of_shared = shared == nullptr ? nullptr : &*shared->states_;
    TANDEM_ASSIGN_OR_RETURN(DraftStates states, DraftStates::Create(limits, backend, of_shared));
    buffers.states_.emplace(std::move(states));
  }
  if (shared != nullptr) {
    buffers.device_ = shared->device_;
    buffers.results_ = shared->results_;
  } else {
    TANDEM_ASSIGN_OR_RETURN(kernels::Buffer to, backend.Allocate(inputs));
    TANDEM_ASSIGN_OR_RETURN(kernels::Buffer from, backend.Allocate(results));
    buffers.device_ = std::make_shared<const kernels::Buffer>(std::move(to));
    buffers.results_ = std::make_shared<const kernels::Buffer>(std::move(from));
  }
  TANDEM_ASSIGN_OR_RETURN(buffers.staging_, backend.AllocateHost(inputs));
  TANDEM_ASSIGN_OR_RETURN(buffers.host_results_, backend.AllocateHost(results));
  std::fill_n(buffers.staging_.data(), inputs, std::byte{0});
  auto* const greedy =
      reinterpret_cast<kernels::SamplingRow*>(buffers.staging_.data() + sizeof(Inputs));
  for (uint32_t i = 0; i < MaxGuesses(limits); ++i) {
    greedy[i] = {.temperature = 0.0f, .logits_row = static_cast<int32_t>(i)};
  }
  for (uint32_t i = 0; i < Inputs::kMost; ++i) {
    buffers.host().rows[i] = buffers.host().query_offsets[i] = static_cast<int32_t>(i);
  }
  buffers.host().query_offsets[Inputs::kMost] = static_cast<int32_t>(Inputs::kMost);
  return buffers;
}

uint64_t DraftBuffers::DeviceBytes(const step::StepLimits& limits, bool reads_states) {
  return sizeof(Inputs) + GreedyBytes(limits) + Aligned(MaxGuesses(limits) * sizeof(int32_t)) +
         ResultBytes(limits) + (reads_states ? DraftStates::DeviceBytes(limits) : 0);
}

const kernels::SamplingRow* DraftBuffers::greedy() const {
  return reinterpret_cast<const kernels::SamplingRow*>(device_->data() + sizeof(Inputs));
}

const int32_t* DraftBuffers::judged() const {
  return reinterpret_cast<const int32_t*>(device_->data() + sizeof(Inputs) + GreedyBytes(limits_));
}

HeadBatch DraftBuffers::Head(const int32_t* tokens, uint32_t count) const {
  HeadBatch head;
  head.num_samples = count;
  if (count == 0) return head;
  HeadSlice slice;
  slice.num_rows = slice.num_samples = count;
  slice.tokens = tokens;
  slice.sampling = greedy();
  head.slices = {slice};
  return head;
}

DraftBuffers::Staged DraftBuffers::Stage(const step::StepDescriptor& step,
                                         const StepBuffers::Staged& staged) {
  const auto drafts = [&](uint32_t s) { return step.sequences[s].num_drafts; };
  order_.clear();
  for (uint32_t s = 0; s < step.sequences.size(); ++s) {
    if (drafts(s) > 0) order_.push_back(s);
  }
  std::ranges::stable_sort(order_, std::ranges::greater(), drafts);
  begins_.assign(1, 0);
  Staged out;
  const uint32_t num_passes = order_.empty() ? 0 : drafts(order_.front());
  for (uint32_t index = 0; index < num_passes; ++index) StagePass(step, staged, index, out);
  StageTokenUpdate(step, staged, out);
  const uint32_t num_judged = StageJudged(step);
  out.whole = {.batch = staged.batch,
               .head = Head(judged(), num_judged),
               .guesses = results() + begins_.back()};
  out.whole.batch.groups = Groups(staged.batch.groups[options_.group]);
  out.whole.batch.states = {};
  if (states_.has_value()) StageStates(step, out);
  return out;
}

std::vector<GroupBatch> DraftBuffers::Groups(const GroupBatch& own) const {
  std::vector<GroupBatch> groups(options_.own_group + 1);
  groups.back() = own;
  return groups;
}

void DraftBuffers::StageStates(const step::StepDescriptor& step, Staged& out) {
  const DraftStates::Staged staged = states_->Stage(step, order_, out.whole.batch.tokens);
  for (DraftPass& pass : out.passes) {
    pass.all_states = states_->all_states();
    pass.state_rows = &pass == &out.passes.front() ? staged.of_drafters : staged.of_guesses;
    pass.own_states = states_->step_states();
  }
  out.whole.all_states = states_->all_states();
  out.whole.state_rows = staged.of_tokens;
  out.keep_states = staged.keep;
}

void DraftBuffers::StagePass(const step::StepDescriptor& step, const StepBuffers::Staged& staged,
                             uint32_t index, Staged& out) {
  Inputs& inputs = host();
  Inputs::Pass& places = inputs.passes[index];
  Batch batch;
  for (const uint32_t s : order_) {
    const step::SequenceEntry& sequence = step.sequences[s];
    if (sequence.num_drafts <= index) break;
    const uint32_t token = step.TokenBeforeDrafts(s) + index;
    const uint32_t context = sequence.context_len - sequence.num_drafts + index;
    const uint32_t i = batch.num_seqs++;
    if (index == 0) {
      inputs.ids[i] = step.tokens[token];
      inputs.table_rows[i] = static_cast<int32_t>(sequence.slot);
    }
    places.positions[i] = step.positions[token];
    places.context_lens[i] = static_cast<int32_t>(context);
    places.slots[i] = step.groups[options_.group].slot_mapping[token];
    batch.max_context_len = std::max(batch.max_context_len, context);
  }
  const auto at = [&](const auto* field) { return Placed(field, inputs, device_->data()); };
  batch.tokens = batch.num_seqs;
  batch.max_query_len = 1;
  batch.ids = index == 0 ? at(inputs.ids) : out.passes.back().guesses;
  batch.positions = at(places.positions);
  batch.query_offsets = at(inputs.query_offsets);
  batch.context_lens = at(places.context_lens);
  batch.table_rows = at(inputs.table_rows);
  batch.table_stride = staged.batch.table_stride;
  batch.groups = Groups({.block_tables = staged.batch.groups[options_.group].block_tables,
                         .slots = at(places.slots)});
  out.passes.push_back({.batch = batch,
                        .head = Head(at(inputs.rows), batch.num_seqs),
                        .guesses = results() + begins_.back()});
  begins_.push_back(begins_.back() + batch.num_seqs);
}

void DraftBuffers::StageTokenUpdate(const step::StepDescriptor& step,
                                    const StepBuffers::Staged& staged, Staged& out) {
  Inputs& inputs = host();
  uint32_t count = 0;
  for (uint32_t i = 0; i < order_.size(); ++i) {
    const uint32_t first = step.TokenBeforeDrafts(order_[i]) + 1;
    for (uint32_t pass = 0; pass < step.sequences[order_[i]].num_drafts; ++pass) {
      inputs.runs[count++] = {.to = first + pass, .from = begins_[pass] + i, .count = 1};
    }
  }
  out.token_update = {.runs = Placed(&inputs.runs[0], inputs, device_->data()),
                      .num_runs = count,
                      .values = results(),
                      .num_values = count,
                      .out = const_cast<int32_t*>(staged.batch.ids),
                      .out_size = staged.batch.tokens};
}

uint32_t DraftBuffers::StageJudged(const step::StepDescriptor& step) {
  auto* const tokens =
      reinterpret_cast<int32_t*>(staging_.data() + sizeof(Inputs) + GreedyBytes(limits_));
  guess_at_.clear();
  uint32_t num_judged = 0;
  size_t s = 0;
  for (const step::RowRequest& row : step.rows) {
    if ((row.wants & step::kWantGuess) == 0) continue;
    while (step.query_offsets[s + 1] <= row.token) ++s;
    const uint32_t index = row.token - step.TokenBeforeDrafts(s);
    if (index < step.sequences[s].num_drafts) {
      const auto place = std::ranges::find(order_, static_cast<uint32_t>(s)) - order_.begin();
      guess_at_.push_back(begins_[index] + static_cast<uint32_t>(place));
    } else {
      guess_at_.push_back(begins_.back() + num_judged);
      tokens[num_judged++] = static_cast<int32_t>(row.token);
    }
  }
  TANDEM_CHECK(num_judged <= MaxGuesses(limits_)) << num_judged << " guesses";
  return num_judged;
}

void DraftBuffers::Upload(kernels::Backend& backend) {
  backend.Upload(device_->data(), staging_.data(), staging_.bytes());
  if (states_.has_value()) states_->Upload(backend);
}

void DraftBuffers::Download(kernels::Backend& backend) {
  if (guess_at_.empty()) return;
  backend.Download(host_results_.data(), results_->data(), host_results_.bytes());
}

std::vector<TokenId> DraftBuffers::Guesses() const {
  const auto* const found = reinterpret_cast<const int32_t*>(host_results_.data());
  std::vector<TokenId> guesses;
  guesses.reserve(guess_at_.size());
  for (const uint32_t at : guess_at_) guesses.push_back(found[at]);
  return guesses;
}

}  // namespace tandem::worker
