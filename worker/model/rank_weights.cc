#include "worker/model/rank_weights.h"

#include <algorithm>
#include <span>
#include <utility>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/str_cat.h"
#include "common/base/check.h"
#include "common/base/status.h"
#include "common/model/slices.h"
#include "common/tensor/dequantize.h"

namespace tandem::worker {
namespace {

constexpr int kNumRoles = static_cast<int>(model::Role::kFirstFolded);
constexpr uint64_t kPageBytes = 4096;

// Reads one byte of every page of the slice, so that the first step does not wait for the disk.
void PageIn(const model::WeightSlice& slice) {
  const uint64_t row_bytes = tensor::RowBytes(slice.type, slice.cols);
  [[maybe_unused]] volatile std::byte sink{};
  for (uint64_t matrix = 0; matrix < slice.count; ++matrix) {
    const std::byte* first = slice.data + matrix * slice.matrix_stride_bytes;
    for (uint64_t row = 0; row < slice.rows; ++row) {
      const std::byte* begin = first + row * slice.row_stride_bytes;
      for (uint64_t at = 0; at < row_bytes; at += kPageBytes) sink = begin[at];
    }
  }
}

kernels::WeightUse UseOf(const model::WeightSlice& slice, bool tied) {
  // A lookup may stay in the file; what is gathered from it does not.
  const auto lookup =
      slice.scattered() ? kernels::WeightUse::kProduct : kernels::WeightUse::kLookup;
  switch (slice.role) {
    case model::Role::kLatentUp:
    case model::Role::kLatentKeyUp:
    case model::Role::kLatentValueUp:
      return kernels::WeightUse::kHeads;
    case model::Role::kTokenEmbedding:
      return tied ? kernels::WeightUse::kProduct : lookup;
    case model::Role::kPositionEmbedding:
    case model::Role::kLayerEmbedding:
    case model::Role::kDraftEmbedding:
      return lookup;
    default:
      return kernels::WeightUse::kProduct;
  }
}

kernels::Weight HostWeight(const model::WeightSlice& slice) {
  return {.type = slice.type,
          .data = slice.data,
          .rows = static_cast<uint32_t>(slice.rows),
          .cols = static_cast<uint32_t>(slice.cols),
          .row_stride_bytes = slice.row_stride_bytes,
          .col_begin = static_cast<uint32_t>(slice.col_begin),
          .col_count = static_cast<uint32_t>(slice.col_count),
          .count = static_cast<uint32_t>(slice.count),
          .matrix_stride_bytes = slice.matrix_stride_bytes};
}

// Of V's norm, which has no weight.
uint32_t NumOnes(const model::ModelSpec& spec) {
  uint32_t ones = 0;
  if (!spec.value_norm) return ones;
  for (const model::KvGroupSpec& group : spec.kv_groups) {
    ones = std::max(ones, spec.HeadsOf(group).value_dim);
  }
  return ones;
}

// The values of a vector, or of one per expert, which are the rank's own columns of each row.
std::vector<float> ValuesOf(const model::WeightSlice& slice) {
  std::vector<std::byte> rows(slice.bytes());
  slice.Gather(rows.data());
  std::vector<float> row(slice.cols), values;
  const uint64_t row_bytes = tensor::RowBytes(slice.type, slice.cols);
  for (uint64_t i = 0; i < slice.count * slice.rows; ++i) {
    tensor::Dequantize(slice.type, rows.data() + i * row_bytes, row.data(), slice.cols);
    for (uint64_t c = 0; c < slice.col_count; ++c) {
      values.push_back(row[slice.col_begin + c] * slice.factor);
    }
  }
  return values;
}

// A scattered slice that was gathered at `data`.
kernels::Weight GatheredWeight(const model::WeightSlice& slice, const std::byte* data) {
  kernels::Weight weight = HostWeight(slice);
  weight.data = data;
  weight.row_stride_bytes = tensor::RowBytes(slice.type, slice.cols);
  weight.matrix_stride_bytes = weight.rows * weight.row_stride_bytes;
  return weight;
}

}  // namespace

RankWeights::RankWeights(uint32_t layers) : entries_((layers + 1) * kNumRoles) {}

RankWeights::Entry& RankWeights::At(model::Role role, int layer) {
  return entries_[static_cast<size_t>(layer + 1) * kNumRoles + static_cast<size_t>(role)];
}

const RankWeights::Entry& RankWeights::At(model::Role role, int layer) const {
  return const_cast<RankWeights*>(this)->At(role, layer);
}

bool RankWeights::Has(model::Role role, int layer) const { return At(role, layer).present; }

const kernels::Weight& RankWeights::Matrix(model::Role role, int layer) const {
  const Entry& entry = At(role, layer);
  TANDEM_CHECK(entry.present) << "role " << static_cast<int>(role) << " of layer " << layer;
  return entry.matrix;
}

const float* RankWeights::Vector(model::Role role, int layer) const {
  return At(role, layer).vector;
}

uint64_t RankWeights::PlacedBytes(const kernels::Backend& backend) const {
  uint64_t bytes = vector_bytes_;
  for (const Entry& entry : entries_) {
    if (entry.matrix.rows > 0) bytes += backend.PlacedBytes(entry.matrix);
  }
  return bytes;
}

absl::StatusOr<std::unique_ptr<RankWeights>> RankWeights::Describe(const gguf::File& file,
                                                                   const model::ModelSpec& spec,
                                                                   const model::ShardPlan& plan) {
  std::unique_ptr<RankWeights> weights(new RankWeights(spec.NumLoadedLayers()));
  TANDEM_RETURN_IF_ERROR(
      model::ForEachSlice(file, spec, plan, [&](const model::WeightSlice& slice) {
        weights->bytes_ += slice.bytes();
        if (model::IsVector(slice.role)) {
          weights->vector_bytes_ += slice.bytes();
          return absl::OkStatus();
        }
        Entry& entry = weights->At(slice.role, slice.layer);
        entry.present = true;
        entry.matrix = slice.scattered() ? GatheredWeight(slice, slice.data) : HostWeight(slice);
        return absl::OkStatus();
      }));
  return weights;
}

absl::StatusOr<std::unique_ptr<RankWeights>> RankWeights::Load(const gguf::File& file,
                                                               const model::ModelSpec& spec,
                                                               const model::ShardPlan& plan,
                                                               kernels::Backend& backend,
                                                               const LoadProgress& progress) {
  TANDEM_ASSIGN_OR_RETURN(const uint64_t total, model::WeightBytes(file, spec, plan));
  std::unique_ptr<RankWeights> weights(new RankWeights(spec.NumLoadedLayers()));
  std::vector<model::WeightSlice> vectors;
  // If weights are copied, the file is read once.
  kernels::WeightCopy* const copies = backend.weight_copy();
  if (copies != nullptr) {
    copies->OnCopied([&file](std::span<const std::byte> part) { file.DropPages(part); });
  }
  const absl::Cleanup quiet = [&] {
    if (copies != nullptr) copies->OnCopied(nullptr);
  };
  TANDEM_RETURN_IF_ERROR(
      model::ForEachSlice(file, spec, plan, [&](const model::WeightSlice& slice) -> absl::Status {
        if (!copies && !slice.scattered()) PageIn(slice);
        weights->bytes_ += slice.bytes();
        Entry& entry = weights->At(slice.role, slice.layer);
        entry.present = true;
        if (model::IsVector(slice.role)) {
          weights->vector_bytes_ += slice.bytes();
          vectors.push_back(slice);
        } else {
          kernels::Weight host = HostWeight(slice);
          if (slice.scattered()) {
            auto gathered = std::make_unique<std::byte[]>(slice.bytes());
            slice.Gather(gathered.get());
            host = GatheredWeight(slice, gathered.get());
            weights->gathered_.push_back(std::move(gathered));
          }
          host.use = UseOf(slice, !spec.Has(model::Feature::kUntiedHead));
          if (!slice.scales.empty()) {
            host.scales = weights->scales_.emplace_back(slice.scales).data();
          }
          absl::StatusOr<kernels::Weight> placed = backend.PlaceWeight(host);
          if (!placed.ok()) return Annotate(placed.status(), slice.name);
          entry.matrix = *placed;
          if (copies) {
            file.DropPages({slice.data, slice.extent_bytes()});
            weights->gathered_.clear();
          }
        }
        if (progress) progress(weights->bytes_, total);
        return absl::OkStatus();
      }));
  TANDEM_RETURN_IF_ERROR(weights->PlaceVectors(vectors, NumOnes(spec), backend));
  if (copies) {
    for (const gguf::FilePart& part : file.parts()) file.DropPages(part.bytes);
  }
  return weights;
}

absl::Status RankWeights::PlaceVectors(const std::vector<model::WeightSlice>& slices,
                                       uint32_t num_ones, kernels::Backend& backend) {
  // Every vector starts on a 64-byte boundary.
  auto padded = [](uint64_t values) { return (values + 15) / 16 * 16; };
  uint64_t total = padded(num_ones);
  for (const auto& slice : slices) total += padded(slice.count * slice.rows * slice.col_count);
  std::vector<float> host(std::max<uint64_t>(total, 1));
  TANDEM_ASSIGN_OR_RETURN(vectors_, backend.Allocate(host.size() * sizeof(float)));
  uint64_t at = 0;
  for (const auto& slice : slices) {
    const std::vector<float> values = ValuesOf(slice);
    std::ranges::copy(values, host.begin() + static_cast<std::ptrdiff_t>(at));
    At(slice.role, slice.layer).vector = reinterpret_cast<const float*>(vectors_.data()) + at;
    at += padded(values.size());
  }
  std::fill_n(host.data() + at, num_ones, 1.0f);
  if (num_ones > 0) ones_ = reinterpret_cast<const float*>(vectors_.data()) + at;
  backend.BeginEncode(kernels::EncodeMode::kRun);
  backend.Upload(vectors_.data(), host.data(), host.size() * sizeof(float));
  return backend.SubmitAndWait(Deadline::After(std::chrono::minutes(1)));
}

}  // namespace tandem::worker
