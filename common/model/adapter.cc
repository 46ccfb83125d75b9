#include "common/model/adapter.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <string_view>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/check.h"
#include "common/base/status.h"
#include "common/base/strings.h"
#include "common/gguf/keys.h"
#include "common/gguf/quote.h"
#include "common/model/architecture.h"
#include "common/tensor/dequantize.h"

namespace tandem::model {
namespace {

constexpr std::string_view kSuffixOfA = ".lora_a";
constexpr std::string_view kSuffixOfB = ".lora_b";

template <typename... Args>
absl::Status BadTensor(std::string_view name, const Args&... args) {
  return absl::InvalidArgumentError(absl::StrCat("tensor ", gguf::Quoted(name), args...));
}

absl::Status CheckText(const gguf::Metadata& metadata, std::string_view key,
                       std::string_view needed) {
  TANDEM_ASSIGN_OR_RETURN(const std::optional<std::string_view> found, metadata.FindString(key));
  if (found == needed) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat(Sv(key), " of a LoRA adapter for this model must be ", gguf::Quoted(needed),
                   ", found ", found.has_value() ? gguf::Quoted(*found) : "none"));
}

// Whether the layers of this build can add to what the matrix gives.
bool CanAdapt(const ModelSpec& spec, Role role, uint32_t layer) {
  switch (role) {
    case Role::kAttnQ:
    case Role::kAttnK:
    case Role::kAttnV:
    case Role::kAttnGate:
    case Role::kAttnOutput:
      return !spec.IsRecurrent(layer) && !spec.mla.has_value();
    case Role::kFfnGate:
    case Role::kFfnUp:
    case Role::kFfnDown:
      return !spec.IsMoe(layer);
    default:
      return false;
  }
}

// Adds the parts of the tensor that `a` and `b` change to `matrices`.
class Reader {
 public:
  Reader(const Architecture& architecture, const ModelSpec& spec, const gguf::File& file,
         float alpha)
      : architecture_(architecture), spec_(spec), file_(file), alpha_(alpha) {}

  absl::Status Read(const gguf::TensorInfo& a, std::vector<AdaptedMatrix>& matrices) const {
    const std::string_view target = a.name.substr(0, a.name.size() - kSuffixOfA.size());
    const std::string name_of_b = absl::StrCat(Sv(target), Sv(kSuffixOfB));
    const gguf::TensorInfo* const b = file_.FindTensor(name_of_b);
    if (b == nullptr) return BadTensor(a.name, ": ", gguf::Quoted(name_of_b), " is missing");
    const ParsedName name = ParseTensorName(target);
    bool known = false;
    for (const TensorRow& row : architecture_.tensors) {
      if (row.pattern != name.pattern || row.per_layer() != name.layer.has_value()) continue;
      known = true;
      if (!name.layer.has_value() || *name.layer >= spec_.num_layers ||
          !CanAdapt(spec_, row.role, *name.layer)) {
        return Unsupported(target);
      }
      // The model's own tensor, too, is not used where it does not apply.
      if (!Applies(spec_, row, *name.layer)) continue;
      const AdaptedMatrix matrix{
          .row = &row, .layer = *name.layer, .a = &a, .b = b, .scale = ScaleOf(a)};
      TANDEM_RETURN_IF_ERROR(Check(matrix));
      matrices.push_back(matrix);
    }
    if (!known) return BadTensor(a.name, ": the model has no tensor ", gguf::Quoted(target));
    return absl::OkStatus();
  }

 private:
  static absl::Status Unsupported(std::string_view target) {
    return absl::UnimplementedError(absl::StrCat(
        "an adapter of tensor ", gguf::Quoted(target),
        " is not supported, only those of attention's and dense feed-forward blocks' matrices"));
  }

  // As llama.cpp has it: an alpha of 0 leaves the product as it is.
  float ScaleOf(const gguf::TensorInfo& a) const {
    return alpha_ == 0 ? 1.0f : alpha_ / static_cast<float>(a.dims[1]);
  }

  absl::Status Check(const AdaptedMatrix& matrix) const {
    const Placement place = Place(spec_, architecture_.tensors, *matrix.row, matrix.layer);
    const uint64_t rank = matrix.a->dims[1];
    if (rank > kMaxAdapterRank) {
      return BadTensor(matrix.a->name, " has rank ", rank, ", at most ", kMaxAdapterRank);
    }
    TANDEM_RETURN_IF_ERROR(CheckMatrix(*matrix.a, place.cols, rank));
    return CheckMatrix(*matrix.b, rank, place.rows);
  }

  static absl::Status CheckMatrix(const gguf::TensorInfo& tensor, uint64_t cols, uint64_t rows) {
    if (!tensor::Traits(tensor.type).supported) {
      return absl::UnimplementedError(absl::StrCat("tensor ", gguf::Quoted(tensor.name), ": type ",
                                                   Sv(tensor::Name(tensor.type)),
                                                   " is not supported"));
    }
    if (tensor.dims[0] == cols && tensor.dims[1] == rows && tensor.values == cols * rows) {
      return absl::OkStatus();
    }
    return BadTensor(tensor.name, ": needed shape [", cols, ", ", rows, "], found ",
                     tensor.ShapeText());
  }

  const Architecture& architecture_;
  const ModelSpec& spec_;
  const gguf::File& file_;
  const float alpha_;
};

TensorPart PartOf(const AdaptedMatrix& matrix, const ModelSpec& spec, const ShardPlan& plan) {
  const Architecture* const architecture = FindArchitecture(spec.architecture);
  TANDEM_CHECK(architecture != nullptr) << "the adapter was read with the spec";
  return PartOfTensor(*architecture, *matrix.row, static_cast<int>(matrix.layer), spec, plan);
}

AdapterSlice ShapeOf(const AdaptedMatrix& matrix, const TensorPart& part) {
  return {.rank = matrix.rank(),
          .cols = static_cast<uint32_t>(TensorPart::Count(part.cols)),
          .rows = static_cast<uint32_t>(TensorPart::Count(part.rows))};
}

// Appends columns of row `row`, times `scale`.
void AppendRow(const gguf::TensorInfo& tensor, uint64_t row, const TensorPart::Runs& cols,
               float scale, std::vector<float>& buffer, std::vector<float>& out) {
  buffer.resize(tensor.dims[0]);
  tensor::Dequantize(tensor.type, tensor.data + row * tensor::RowBytes(tensor.type, tensor.dims[0]),
                     buffer.data(), buffer.size());
  for (const WeightSlice::Run& run : cols) {
    for (uint64_t col = run.begin; col < run.end; ++col) out.push_back(buffer[col] * scale);
  }
}

}  // namespace

absl::StatusOr<Adapter> ReadAdapter(gguf::File file, const ModelSpec& spec) {
  const gguf::Metadata& metadata = file.metadata();
  TANDEM_RETURN_IF_ERROR(CheckText(metadata, gguf::keys::kType, "adapter"));
  TANDEM_RETURN_IF_ERROR(CheckText(metadata, gguf::keys::kAdapterType, "lora"));
  TANDEM_RETURN_IF_ERROR(CheckText(metadata, gguf::keys::kArchitecture, spec.architecture));
  if (metadata.Has(gguf::keys::kAdapterInvocation)) {
    return absl::UnimplementedError(absl::StrCat("activated LoRA, which changes only what follows ",
                                                 Sv(gguf::keys::kAdapterInvocation),
                                                 ", is not supported"));
  }
  TANDEM_ASSIGN_OR_RETURN(const float alpha, metadata.GetFloat(gguf::keys::kAdapterLoraAlpha));
  if (!std::isfinite(alpha)) {
    return absl::InvalidArgumentError(
        absl::StrCat(Sv(gguf::keys::kAdapterLoraAlpha), " is ", alpha, ", it must be finite"));
  }
  const Architecture* const architecture = FindArchitecture(spec.architecture);
  if (architecture == nullptr) {
    return absl::InvalidArgumentError(
        absl::StrCat("architecture ", gguf::Quoted(spec.architecture), " is not supported"));
  }
  Adapter adapter{.file = std::move(file), .matrices = {}};
  const Reader reader(*architecture, spec, adapter.file, alpha);
  for (const gguf::TensorInfo& tensor : adapter.file.tensors()) {
    if (tensor.name.ends_with(kSuffixOfA)) {
      TANDEM_RETURN_IF_ERROR(reader.Read(tensor, adapter.matrices));
      continue;
    }
    if (!tensor.name.ends_with(kSuffixOfB)) {
      return BadTensor(tensor.name, " of an adapter must end in ", Sv(kSuffixOfA), " or ",
                       Sv(kSuffixOfB));
    }
    const std::string_view target = tensor.name.substr(0, tensor.name.size() - kSuffixOfB.size());
    const std::string name_of_a = absl::StrCat(Sv(target), Sv(kSuffixOfA));
    if (adapter.file.FindTensor(name_of_a) == nullptr) {
      return BadTensor(tensor.name, ": ", gguf::Quoted(name_of_a), " is missing");
    }
  }
  if (adapter.matrices.empty()) {
    return absl::InvalidArgumentError("the adapter changes none of the model's matrices");
  }
  return adapter;
}

absl::StatusOr<Adapter> OpenAdapter(const std::string& path, const ModelSpec& spec) {
  TANDEM_ASSIGN_OR_RETURN(gguf::File file, gguf::File::Open(path));
  return ReadAdapter(std::move(file), spec);
}

uint64_t AdapterBytes(const Adapter& adapter, const ModelSpec& spec, const ShardPlan& plan) {
  constexpr uint64_t kPanelRows = 16;
  uint64_t values = 0;
  for (const AdaptedMatrix& matrix : adapter.matrices) {
    const AdapterSlice slice = DescribeSlice(matrix, spec, plan);
    const uint64_t rank = (slice.rank + kPanelRows - 1) / kPanelRows * kPanelRows;
    values += rank * (uint64_t{slice.cols} + slice.rows);
  }
  return values * sizeof(float);
}

AdapterSlice DescribeSlice(const AdaptedMatrix& matrix, const ModelSpec& spec,
                           const ShardPlan& plan) {
  return ShapeOf(matrix, PartOf(matrix, spec, plan));
}

AdapterSlice ReadSlice(const AdaptedMatrix& matrix, const ModelSpec& spec, const ShardPlan& plan) {
  const TensorPart part = PartOf(matrix, spec, plan);
  AdapterSlice slice = ShapeOf(matrix, part);
  slice.a.reserve(size_t{slice.rank} * slice.cols);
  slice.b.reserve(size_t{slice.rows} * slice.rank);
  std::vector<float> buffer;
  for (uint32_t row = 0; row < slice.rank; ++row) {
    AppendRow(*matrix.a, row, part.cols, 1.0f, buffer, slice.a);
  }
  for (const WeightSlice::Run& run : part.rows) {
    for (uint64_t row = run.begin; row < run.end; ++row) {
      AppendRow(*matrix.b, row, {{0, slice.rank}}, matrix.scale, buffer, slice.b);
    }
  }
  return slice;
}

}  // namespace tandem::model
