#include "common/model/check_tensors.h"

#include <algorithm>
#include <string>
#include <string_view>

#include "absl/strings/str_cat.h"
#include "common/base/status.h"
#include "common/base/strings.h"
#include "common/gguf/quote.h"
#include "common/model/matrix_scales.h"
#include "common/model/shape.h"

namespace tandem::model {
namespace {

const TensorRow* FindRow(const Architecture& architecture, const ParsedName& name) {
  for (const TensorRow& row : architecture.tensors) {
    // A name in a file may contain "{L}" literally; it then belongs to no layer.
    if (row.pattern == name.pattern && row.per_layer() == name.layer.has_value()) return &row;
  }
  return nullptr;
}

std::string SupportedTypes() {
  std::string all;
  for (uint32_t number = 0; number < 64; ++number) {
    const auto traits = tensor::FindTypeTraits(number);
    if (!traits.has_value() || !traits->supported) continue;
    absl::StrAppend(&all, all.empty() ? "" : ", ", Sv(traits->name));
  }
  return all;
}

absl::Status Bad(std::string_view name, std::string_view what) {
  return absl::InvalidArgumentError(absl::StrCat("tensor ", gguf::Quoted(name), Sv(what)));
}

// Optional features; a model without one of the others is incomplete.
bool IsOptional(Feature feature) {
  switch (feature) {
    case Feature::kAlways:
    case Feature::kPlainQuery:
    case Feature::kJointKvB:
    case Feature::kDeltaSplitIn:
    case Feature::kDeltaSplitGates:
    case Feature::kSeparateExperts:
      return false;
    default:
      return true;
  }
}

// Why the layer of a tensor cannot have it; empty if it can.
std::string_view WhyNot(const ModelSpec& spec, Layers layers, uint32_t layer) {
  switch (layers) {
    case Layers::kAll:
    case Layers::kCached:
    case Layers::kValues:
      return "";
    case Layers::kDense:
      return spec.IsMoe(layer) ? " is of a dense layer, but the layer is a mixture of experts" : "";
    case Layers::kMixture:
      return spec.IsMoe(layer) ? "" : " is of a mixture of experts, but the layer is dense";
    case Layers::kAttention:
      return spec.IsRecurrent(layer) ? " is of a layer of attention, but the layer is recurrent"
                                     : "";
    case Layers::kRecurrent:
      return spec.IsRecurrent(layer) ? "" : " is of a recurrent layer, but the layer has attention";
    case Layers::kDraft:
      return spec.IsDraft(layer) ? "" : " is of a draft head, but the layer is none";
  }
  return "";
}

absl::Status CheckTensor(const gguf::File& file, const Architecture& architecture,
                         const TensorRow& row, int layer, const ModelSpec& spec) {
  const std::string name = TensorName(row, layer);
  const gguf::TensorInfo* tensor = file.FindTensor(name);
  if (tensor == nullptr) {
    return Bad(name, spec.IsDraft(static_cast<uint32_t>(layer)) ? " of the draft head is missing"
                     : IsOptional(row.feature) ? " is missing, but others of its kind are there"
                                               : " is missing");
  }
  const Placement needed = Place(spec, architecture.tensors, row, static_cast<uint32_t>(layer));
  if (needed.rows * needed.cols * needed.count == 0) {
    return Bad(name, " is there, but a key that gives its size is missing or 0");
  }
  if (!HasShape(*tensor, needed)) {
    return Bad(name,
               absl::StrCat(": needed shape ", ShapeText(needed), ", found ", tensor->ShapeText()));
  }
  if (!tensor::Traits(tensor->type).supported) {
    return absl::UnimplementedError(absl::StrCat("tensor ", gguf::Quoted(name), ": type ",
                                                 Sv(tensor::Name(tensor->type)),
                                                 " is not supported, only ", SupportedTypes()));
  }
  return CheckScale(file, architecture, row, layer, spec);
}

// Every layer has a feed-forward block of a kind whose tensors the table has.
absl::Status CheckFeedForward(const Architecture& architecture, const ModelSpec& spec) {
  const auto has = [&](Role role) {
    return std::any_of(architecture.tensors.begin(), architecture.tensors.end(),
                       [&](const TensorRow& row) { return row.role == role; });
  };
  const bool dense = has(Role::kFfnDown), mixture = has(Role::kExpertDown);
  for (uint32_t layer = 0; layer < spec.NumLoadedLayers(); ++layer) {
    if (spec.IsMoe(layer) ? mixture : dense) continue;
    return absl::UnimplementedError(
        absl::StrCat("layer ", layer, spec.IsMoe(layer) ? " is a mixture of experts" : " is dense",
                     ", of which architecture ", Sv(architecture.name), " has none"));
  }
  return absl::OkStatus();
}

// The row of the matrix that a tensor which is not in the table is a scale of.
absl::StatusOr<const TensorRow*> RowOfScale(const gguf::File& file,
                                            const Architecture& architecture,
                                            std::string_view tensor, const ParsedName& name) {
  const TensorRow* const row = FindScaledRow(architecture, name);
  if (row == nullptr) {
    return Bad(tensor,
               absl::StrCat(" is not one that architecture ", Sv(architecture.name), " has"));
  }
  const std::string matrix = TensorName(*row, static_cast<int>(name.layer.value_or(0)));
  if (file.FindTensor(matrix) != nullptr) return row;
  return Bad(tensor, absl::StrCat(" is of tensor ", gguf::Quoted(matrix), ", which is missing"));
}

// Layers without a value projection, of architectures that have such.
void ProbeValues(const gguf::File& file, const Architecture& architecture, ModelSpec& spec) {
  for (const TensorRow& row : architecture.tensors) {
    if (row.layers != Layers::kValues) continue;
    spec.values_are_keys.assign(spec.num_layers, false);
    for (uint32_t layer = 0; layer < spec.num_layers; ++layer) {
      const std::string name = TensorName(row, static_cast<int>(layer));
      spec.values_are_keys[layer] = spec.HasCache(layer) && file.FindTensor(name) == nullptr;
    }
  }
}

}  // namespace

absl::Status ProbeFeatures(const gguf::File& file, const Architecture& architecture,
                           ModelSpec& spec) {
  if (architecture.requires_qk_norm) spec.features.Add(Feature::kQkNorm);
  if (spec.moe.has_value() && spec.moe->shared_ffn_size > 0) {
    spec.features.Add(Feature::kSharedExperts);
  }
  const uint64_t blocks = uint64_t{spec.num_layers} + spec.num_draft_layers;
  const uint32_t loaded = spec.NumLoadedLayers();
  for (const gguf::TensorInfo& tensor : file.tensors()) {
    const ParsedName name = ParseTensorName(tensor.name);
    if (name.layer.has_value() && *name.layer >= loaded && *name.layer < blocks) continue;
    const TensorRow* row = FindRow(architecture, name);
    if (row == nullptr) {
      TANDEM_ASSIGN_OR_RETURN(row, RowOfScale(file, architecture, tensor.name, name));
    }
    if (name.layer.has_value() && *name.layer >= loaded) {
      return Bad(tensor.name, absl::StrCat(" is of layer ", *name.layer, ", but there are only ",
                                           spec.num_layers, " layers"));
    }
    if (name.layer.has_value()) {
      const std::string_view why_not = WhyNot(spec, row->layers, *name.layer);
      if (!why_not.empty()) return Bad(tensor.name, why_not);
    }
    spec.features.Add(row->feature);
  }
  ProbeValues(file, architecture, spec);
  return absl::OkStatus();
}

absl::Status CheckTensors(const gguf::File& file, const Architecture& architecture,
                          const ModelSpec& spec) {
  TANDEM_RETURN_IF_ERROR(CheckFeedForward(architecture, spec));
  for (const TensorRow& row : architecture.tensors) {
    const uint32_t layers = row.per_layer() ? spec.NumLoadedLayers() : 1;
    for (uint32_t layer = 0; layer < layers; ++layer) {
      if (!Applies(spec, row, layer)) continue;
      TANDEM_RETURN_IF_ERROR(CheckTensor(file, architecture, row, static_cast<int>(layer), spec));
    }
  }
  return absl::OkStatus();
}

}  // namespace tandem::model
