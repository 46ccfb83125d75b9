#include "common/model/matrix_scales.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <string>
#include <string_view>

#include "absl/strings/str_cat.h"
#include "common/base/status.h"
#include "common/base/strings.h"
#include "common/gguf/quote.h"

namespace tandem::model {
namespace {

constexpr std::string_view kOfMatrix = ".weight";
constexpr std::string_view kOfScale = ".scale";
constexpr std::string_view kOfInputScale = ".input_scale";

bool IsEmbedding(Role role) {
  return role == Role::kTokenEmbedding || role == Role::kPositionEmbedding ||
         role == Role::kLayerEmbedding || role == Role::kDraftEmbedding;
}

// Whether products with the row's tensor can have a scale.
bool MayHaveScale(const TensorRow& row) {
  return row.pattern.ends_with(kOfMatrix) && !IsVector(row.role) && !IsEmbedding(row.role);
}

// `name` with `to` in place of `from` at its end.
std::string Renamed(std::string_view name, std::string_view from, std::string_view to) {
  return absl::StrCat(Sv(name.substr(0, name.size() - from.size())), Sv(to));
}

// Null if the file has none.
const gguf::TensorInfo* FindScale(const gguf::File& file, const Architecture& architecture,
                                  const TensorRow& row, int layer) {
  if (!MayHaveScale(row)) return nullptr;
  const std::string name = Renamed(TensorName(row, layer), kOfMatrix, kOfScale);
  const bool scale = FindScaledRow(architecture, ParseTensorName(name)) != nullptr;
  return scale ? file.FindTensor(name) : nullptr;
}

absl::StatusOr<std::vector<float>> ReadAll(const gguf::TensorInfo& tensor, uint64_t count) {
  if (tensor.type != tensor::Type::kF32 || tensor.values != count) {
    return absl::InvalidArgumentError(
        absl::StrCat("tensor ", gguf::Quoted(tensor.name), ": needed type F32 and shape [", count,
                     "], found ", Sv(tensor::Name(tensor.type)), " and ", tensor.ShapeText()));
  }
  std::vector<float> scales(count);
  std::memcpy(scales.data(), tensor.data, count * sizeof(float));
  const auto bad = std::find_if_not(scales.begin(), scales.end(),
                                    [](float scale) { return std::isfinite(scale); });
  if (bad == scales.end()) return scales;
  return absl::InvalidArgumentError(
      absl::StrCat("tensor ", gguf::Quoted(tensor.name), ": needed finite numbers, found ", *bad));
}

absl::StatusOr<std::vector<float>> ReadAll(const gguf::File& file, const Architecture& architecture,
                                           const TensorRow& row, int layer, const ModelSpec& spec) {
  const gguf::TensorInfo* const tensor = FindScale(file, architecture, row, layer);
  if (tensor == nullptr) return std::vector<float>();
  return ReadAll(*tensor, SizeOf(spec, row.count));
}

}  // namespace

const TensorRow* FindScaledRow(const Architecture& architecture, const ParsedName& name) {
  for (const TensorRow& row : architecture.tensors) {
    if (row.pattern == name.pattern) return nullptr;
  }
  for (const std::string_view suffix : {kOfScale, kOfInputScale}) {
    if (!name.pattern.ends_with(suffix)) continue;
    const std::string pattern = Renamed(name.pattern, suffix, kOfMatrix);
    for (const TensorRow& row : architecture.tensors) {
      if (row.pattern == pattern && row.per_layer() == name.layer.has_value() &&
          MayHaveScale(row)) {
        return &row;
      }
    }
  }
  return nullptr;
}

absl::Status CheckScale(const gguf::File& file, const Architecture& architecture,
                        const TensorRow& row, int layer, const ModelSpec& spec) {
  return ReadAll(file, architecture, row, layer, spec).status();
}

absl::StatusOr<std::vector<float>> ReadScales(const gguf::File& file,
                                              const Architecture& architecture,
                                              const TensorRow& row, int layer,
                                              const ModelSpec& spec, const ShardPlan& plan) {
  TANDEM_ASSIGN_OR_RETURN(std::vector<float> scales, ReadAll(file, architecture, row, layer, spec));
  if (scales.empty() || row.count != Dim::kExperts) return scales;
  return std::vector<float>(scales.data() + plan.experts.begin, scales.data() + plan.experts.end);
}

}  // namespace tandem::model
