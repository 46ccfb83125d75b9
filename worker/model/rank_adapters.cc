#include "worker/model/rank_adapters.h"

#include <string>
#include <string_view>

#include "common/base/status.h"

namespace tandem::worker {
namespace {

// `values` may be empty: a shape.
kernels::Weight Matrix(uint32_t rows, uint32_t cols, const std::vector<float>& values) {
  return {.type = tensor::Type::kF32,
          .data = values.empty() ? nullptr : values.data(),
          .rows = rows,
          .cols = cols,
          .row_stride_bytes = cols * sizeof(float),
          .col_count = cols,
          .matrix_stride_bytes = size_t{rows} * cols * sizeof(float)};
}

LowRank HostMatrices(const model::AdapterSlice& slice) {
  return {.a = Matrix(slice.rank, slice.cols, slice.a),
          .b = Matrix(slice.rows, slice.rank, slice.b)};
}

}  // namespace

LowRank& RankAdapters::At(const model::AdaptedMatrix& matrix, size_t adapter) {
  std::vector<LowRank>& changes = changes_[{matrix.role(), static_cast<int>(matrix.layer)}];
  changes.resize(count_);
  return changes[adapter];
}

RankAdapters RankAdapters::Describe(const std::vector<model::Adapter>& adapters,
                                    const model::ModelSpec& spec, const model::ShardPlan& plan) {
  RankAdapters shapes(adapters.size());
  for (size_t i = 0; i < adapters.size(); ++i) {
    for (const model::AdaptedMatrix& matrix : adapters[i].matrices) {
      shapes.At(matrix, i) = HostMatrices(model::DescribeSlice(matrix, spec, plan));
    }
  }
  return shapes;
}

absl::StatusOr<RankAdapters> RankAdapters::Load(const std::vector<model::Adapter>& adapters,
                                                const model::ModelSpec& spec,
                                                const model::ShardPlan& plan,
                                                kernels::Backend& backend) {
  RankAdapters loaded(adapters.size());
  const bool copies = backend.weight_copy() != nullptr;
  for (size_t i = 0; i < adapters.size(); ++i) {
    for (const model::AdaptedMatrix& matrix : adapters[i].matrices) {
      model::AdapterSlice slice = model::ReadSlice(matrix, spec, plan);
      const LowRank host = HostMatrices(slice);
      const auto place = [&](const kernels::Weight& weight, std::string_view name) {
        absl::StatusOr<kernels::Weight> placed = backend.PlaceWeight(weight);
        if (!placed.ok()) placed = Annotate(placed.status(), std::string(name));
        return placed;
      };
      LowRank& placed = loaded.At(matrix, i);
      TANDEM_ASSIGN_OR_RETURN(placed.a, place(host.a, matrix.a->name));
      TANDEM_ASSIGN_OR_RETURN(placed.b, place(host.b, matrix.b->name));
      if (copies) continue;
      loaded.values_.push_back(std::move(slice.a));
      loaded.values_.push_back(std::move(slice.b));
    }
  }
  return loaded;
}

std::span<const LowRank> RankAdapters::Of(model::Role role, int layer) const {
  const auto found = changes_.find({role, layer});
  return found == changes_.end() ? std::span<const LowRank>() : found->second;
}

uint64_t RankAdapters::PlacedBytes(const kernels::Backend& backend) const {
  uint64_t bytes = 0;
  for (const auto& [matrix, changes] : changes_) {
    for (const LowRank& change : changes) {
      if (change.a.rows == 0) continue;
      bytes += backend.PlacedBytes(change.a) + backend.PlacedBytes(change.b);
    }
  }
  return bytes;
}

}  // namespace tandem::worker
