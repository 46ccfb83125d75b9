#include "common/model/read_layer_scales.h"

#include <cmath>
#include <string>

#include "absl/strings/str_cat.h"
#include "common/gguf/quote.h"
#include "common/tensor/dequantize.h"

namespace tandem::model {

absl::StatusOr<std::vector<float>> ReadLayerScales(const gguf::File& file,
                                                   const Architecture& architecture,
                                                   const ModelSpec& spec) {
  std::vector<float> scales;
  for (const TensorRow& row : architecture.tensors) {
    if (row.role != Role::kLayerOutputScale || !spec.Has(row.feature)) continue;
    for (uint32_t layer = 0; layer < spec.num_layers; ++layer) {
      const std::string name = TensorName(row, static_cast<int>(layer));
      const gguf::TensorInfo* tensor = file.FindTensor(name);
      float& scale = scales.emplace_back();
      tensor::Dequantize(tensor->type, tensor->data, &scale, 1);
      if (std::isfinite(scale)) continue;
      return absl::InvalidArgumentError(
          absl::StrCat("tensor ", gguf::Quoted(name), ": needed a finite number, found ", scale));
    }
  }
  return scales;
}

}  // namespace tandem::model
