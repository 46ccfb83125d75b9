#include "common/model/slices.h"

#include <cmath>

#include "absl/strings/str_cat.h"
#include "common/base/status.h"
#include "common/gguf/quote.h"
#include "common/model/shape.h"

namespace tandem::model {
namespace {

// Half-open, in single rows or columns.
struct Span {
  uint64_t begin;
  uint64_t end;
};

Range UnitsOf(const ModelSpec& spec, const ShardPlan& plan, Dim major, uint32_t layer) {
  switch (major) {
    case Dim::kHeads:
      return plan.heads;
    case Dim::kKvHeads:
      return KvHeadRange(spec, plan, spec.HeadsOf(layer));
    case Dim::kFfn:
      return FfnRange(spec, plan, layer);
    case Dim::kExpertFfn:
      return plan.expert_ffn;
    case Dim::kSharedFfn:
      return plan.shared_ffn;
    case Dim::kVocab:
      return plan.vocab;
    default:
      return {0, static_cast<uint32_t>(SizeOf(spec, major, layer))};
  }
}

Span PartOf(const ModelSpec& spec, const ShardPlan& plan, Extent extent, uint32_t layer) {
  const Range units = UnitsOf(spec, plan, extent.major, layer);
  const uint64_t unit = SizeOf(spec, extent.minor, layer);
  return {units.begin * unit, units.end * unit};
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
  return visit(SliceTensor(*tensor, architecture, row, layer, spec, plan));
}

}  // namespace

WeightSlice SliceTensor(const gguf::TensorInfo& tensor, const Architecture& architecture,
                        const TensorRow& row, int layer, const ModelSpec& spec,
                        const ShardPlan& plan) {
  const uint32_t sized_as = layer < 0 ? 0 : layer;
  const Placement place = Place(spec, architecture.tensors, row, sized_as);
  const ShardRule rule = RuleOf(row, plan);
  const auto span = [&](Extent extent, bool cut) {
    return cut ? PartOf(spec, plan, extent, sized_as) : Span{0, SizeOf(spec, extent, sized_as)};
  };
  Span rows = span(row.rows, rule == ShardRule::kRows);
  Span cols = span(row.cols, rule == ShardRule::kCols);
  rows = {rows.begin + place.first_row, rows.end + place.first_row};
  cols = {cols.begin + place.first_col, cols.end + place.first_col};
  const uint64_t block = tensor::Traits(tensor.type).block_values;
  // Whole blocks that overlap the columns: a block on a boundary is kept by both ranks.
  const Span kept = {cols.begin / block * block, (cols.end + block - 1) / block * block};

  WeightSlice slice;
  slice.role = row.role;
  slice.layer = layer;
  slice.type = tensor.type;
  slice.rows = rows.end - rows.begin;
  slice.cols = kept.end - kept.begin;
  slice.row_stride_bytes = tensor::RowBytes(tensor.type, place.cols);
  slice.col_begin = cols.begin - kept.begin;
  slice.col_count = cols.end - cols.begin;
  slice.matrix_stride_bytes = place.rows * slice.row_stride_bytes;
  const bool experts = row.count == Dim::kExperts;
  slice.count = experts ? plan.experts.size() : place.count;
  slice.data = tensor.data + (experts ? plan.experts.begin : 0) * slice.matrix_stride_bytes +
               rows.begin * slice.row_stride_bytes + tensor::RowBytes(tensor.type, kept.begin);
  if (row.per_root_hidden) {
    slice.factor = static_cast<float>(1.0 / std::sqrt(static_cast<double>(spec.hidden_size)));
  }
  slice.name = tensor.name;
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
  for (uint32_t layer = 0; layer < spec.num_layers; ++layer) {
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
