#include "common/model/slices.h"

#include <cmath>

#include "absl/strings/str_cat.h"
#include "common/base/status.h"
#include "common/base/strings.h"
#include "common/gguf/quote.h"
#include "common/model/matrix_scales.h"
#include "common/model/shape.h"

namespace tandem::model {
namespace {

using Run = WeightSlice::Run;
using Runs = TensorPart::Runs;

// The value heads of the rank's key heads.
std::vector<Range> ValueHeads(const ModelSpec& spec, const ShardPlan& plan) {
  const DeltaNetSpec& net = *spec.delta_net;
  const Range keys = plan.delta_key_heads;
  const uint32_t per_key = net.value_heads / net.key_heads;
  if (!net.strided_heads) return {{keys.begin * per_key, keys.end * per_key}};
  std::vector<Range> heads;
  for (uint32_t first = 0; first < net.value_heads; first += net.key_heads) {
    heads.push_back({first + keys.begin, first + keys.end});
  }
  return heads;
}

// The heads of q, k and v, as one count.
std::vector<Range> DeltaHeads(const ModelSpec& spec, const ShardPlan& plan) {
  const uint32_t total = spec.delta_net->key_heads;
  const Range keys = plan.delta_key_heads;
  std::vector<Range> heads = {keys, {total + keys.begin, total + keys.end}};
  for (const Range& values : ValueHeads(spec, plan)) {
    heads.push_back({2 * total + values.begin, 2 * total + values.end});
  }
  return heads;
}

std::vector<Range> UnitsOf(const ModelSpec& spec, const ShardPlan& plan, Dim major,
                           uint32_t layer) {
  switch (major) {
    case Dim::kHeads:
      return {plan.heads};
    case Dim::kKvHeads:
      return {KvHeadRange(spec, plan, spec.HeadsOf(layer))};
    case Dim::kFfn:
      return {FfnRange(spec, plan, layer)};
    case Dim::kExpertFfn:
      return {plan.expert_ffn};
    case Dim::kSharedFfn:
      return {plan.shared_ffn};
    case Dim::kVocab:
      return {plan.vocab};
    case Dim::kDeltaKeyHeads:
      return {plan.delta_key_heads};
    case Dim::kDeltaValueHeads:
      return ValueHeads(spec, plan);
    case Dim::kDeltaHeads:
      return DeltaHeads(spec, plan);
    default:
      return {{0, static_cast<uint32_t>(SizeOf(spec, major, layer))}};
  }
}

void Append(Run run, Runs& runs) {
  if (!runs.empty() && runs.back().end == run.begin) {
    runs.back().end = run.end;
  } else {
    runs.push_back(run);
  }
}

// The rank's rows or columns of a part that begins at `first`. If `stride` is not 0, units of the
// extent's major are that far apart, as those of interleaved parts; otherwise they are adjacent.
Runs PartOf(const ModelSpec& spec, const ShardPlan& plan, Extent extent, uint32_t layer,
            bool sharded, uint64_t first, uint64_t stride) {
  const uint64_t unit = SizeOf(spec, extent.minor, layer);
  Runs runs;
  if (!sharded && stride == 0) return {{first, first + SizeOf(spec, extent, layer)}};
  for (const Range& units : UnitsOf(spec, plan, extent.major, layer)) {
    if (stride == 0) {
      Append({first + units.begin * unit, first + units.end * unit}, runs);
      continue;
    }
    for (uint64_t i = units.begin; i < units.end; ++i) {
      Append({first + i * stride, first + i * stride + unit}, runs);
    }
  }
  return runs;
}

// Runs of columns are gathered in whole blocks.
absl::Status CheckRuns(const WeightSlice& slice) {
  const uint64_t block = tensor::Traits(slice.type).block_values;
  for (const Run& run : slice.col_runs) {
    if (run.begin % block == 0 && run.end % block == 0) continue;
    return absl::UnimplementedError(
        absl::StrCat("tensor ", gguf::Quoted(slice.name), ": a rank has columns ", run.begin,
                     " to ", run.end, ", but type ", Sv(tensor::Name(slice.type)),
                     " has blocks of ", block, ": lower --tensor-parallel-size"));
  }
  return absl::OkStatus();
}

// The shard rule with the plan's choice for experts applied; whole experts are split only by
// `count`.
ShardRule RuleOf(const TensorRow& row, const ShardPlan& plan) {
  switch (row.shard) {
    case ShardRule::kExpertRows:
      return plan.expert_parallel ? ShardRule::kReplicated : ShardRule::kRows;
    case ShardRule::kExpertCols:
      return plan.expert_parallel ? ShardRule::kReplicated : ShardRule::kCols;
    case ShardRule::kExpertWhole:
      return ShardRule::kReplicated;
    default:
      return row.shard;
  }
}

absl::Status VisitRow(const gguf::File& file, const ModelSpec& spec, const ShardPlan& plan,
                      const Architecture& architecture, const TensorRow& row, int layer,
                      const std::function<absl::Status(const WeightSlice&)>& visit) {
  const uint32_t sized_as = layer < 0 ? 0 : layer;
  if (IsFolded(row.role) || !Applies(spec, row, sized_as)) {
    return absl::OkStatus();
  }
  const std::string name = TensorName(row, layer);
  const gguf::TensorInfo* tensor = file.FindTensor(name);
  const Placement place = Place(spec, architecture.tensors, row, sized_as);
  if (tensor == nullptr || !HasShape(*tensor, place)) {
    return absl::InvalidArgumentError(absl::StrCat("tensor ", gguf::Quoted(name),
                                                   " is not the one that the model was read from"));
  }
  WeightSlice slice = SliceTensor(*tensor, architecture, row, layer, spec, plan);
  TANDEM_ASSIGN_OR_RETURN(slice.scales, ReadScales(file, architecture, row, layer, spec, plan));
  TANDEM_RETURN_IF_ERROR(CheckRuns(slice));
  return visit(slice);
}

}  // namespace

uint64_t TensorPart::Count(const Runs& runs) {
  uint64_t count = 0;
  for (const Run& run : runs) count += run.end - run.begin;
  return count;
}

TensorPart PartOfTensor(const Architecture& architecture, const TensorRow& row, int layer,
                        const ModelSpec& spec, const ShardPlan& plan) {
  const uint32_t sized_as = layer < 0 ? 0 : layer;
  const Placement place = Place(spec, architecture.tensors, row, sized_as);
  const ShardRule rule = RuleOf(row, plan);
  return {.tensor = place,
          .rows = PartOf(spec, plan, row.rows, sized_as, rule == ShardRule::kRows, place.first_row,
                         row.interleaved ? place.unit_rows : 0),
          .cols = PartOf(spec, plan, row.cols, sized_as, rule == ShardRule::kCols, place.first_col,
                         /*stride=*/0)};
}

WeightSlice SliceTensor(const gguf::TensorInfo& tensor, const Architecture& architecture,
                        const TensorRow& row, int layer, const ModelSpec& spec,
                        const ShardPlan& plan) {
  const TensorPart part = PartOfTensor(architecture, row, layer, spec, plan);
  const Placement& place = part.tensor;
  const Runs& row_runs = part.rows;
  const Runs& col_runs = part.cols;
  const bool scattered = row_runs.size() > 1 || col_runs.size() > 1;
  const uint64_t block = tensor::Traits(tensor.type).block_values;
  // Whole blocks that overlap the columns: a block on a boundary is kept by both ranks.
  const Run cols = scattered ? Run{0, TensorPart::Count(col_runs)} : col_runs[0];
  const Run kept = {cols.begin / block * block, (cols.end + block - 1) / block * block};

  WeightSlice slice;
  slice.role = row.role;
  slice.layer = layer;
  slice.type = tensor.type;
  slice.rows = TensorPart::Count(row_runs);
  slice.cols = kept.end - kept.begin;
  slice.row_stride_bytes = tensor::RowBytes(tensor.type, place.cols);
  slice.col_begin = cols.begin - kept.begin;
  slice.col_count = cols.end - cols.begin;
  slice.matrix_stride_bytes = place.rows * slice.row_stride_bytes;
  const bool experts = row.count == Dim::kExperts;
  slice.count = experts ? plan.experts.size() : place.count;
  slice.data = tensor.data + (experts ? plan.experts.begin : 0) * slice.matrix_stride_bytes +
               (scattered ? 0 : row_runs[0].begin * slice.row_stride_bytes) +
               tensor::RowBytes(tensor.type, kept.begin);
  if (row.per_root_hidden) {
    slice.factor = static_cast<float>(1.0 / std::sqrt(static_cast<double>(spec.hidden_size)));
  }
  slice.name = tensor.name;
  if (scattered) {
    slice.row_runs = row_runs;
    slice.col_runs = col_runs;
  }
  return slice;
}

absl::Status ForEachSlice(const gguf::File& file, const ModelSpec& spec, const ShardPlan& plan,
                          const std::function<absl::Status(const WeightSlice&)>& visit) {
  const Architecture* architecture = FindArchitecture(spec.architecture);
  if (architecture == nullptr) {
    return absl::InvalidArgumentError(
        absl::StrCat("architecture ", gguf::Quoted(spec.architecture), " is not supported"));
  }
  for (const TensorRow& row : architecture->tensors) {
    if (row.per_layer()) continue;
    TANDEM_RETURN_IF_ERROR(VisitRow(file, spec, plan, *architecture, row, -1, visit));
  }
  for (uint32_t layer = 0; layer < spec.NumLoadedLayers(); ++layer) {
    for (const TensorRow& row : architecture->tensors) {
      if (!row.per_layer()) continue;
      TANDEM_RETURN_IF_ERROR(
          VisitRow(file, spec, plan, *architecture, row, static_cast<int>(layer), visit));
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<uint64_t> WeightBytes(const gguf::File& file, const ModelSpec& spec,
                                     const ShardPlan& plan) {
  uint64_t bytes = 0;
  TANDEM_RETURN_IF_ERROR(ForEachSlice(file, spec, plan, [&](const WeightSlice& slice) {
    bytes += slice.bytes();
    return absl::OkStatus();
  }));
  return bytes;
}

}  // namespace tandem::model
