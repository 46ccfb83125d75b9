#include "common/model/shape.h"

#include "absl/strings/str_cat.h"

namespace tandem::model {

bool HasShape(const gguf::TensorInfo& tensor, const Placement& place) {
  return tensor.dims[0] == place.cols && tensor.values == place.rows * place.cols * place.count;
}

std::string ShapeText(const Placement& place) {
  std::string text = absl::StrCat("[", place.cols);
  if (place.rows != 1) absl::StrAppend(&text, ", ", place.rows);
  if (place.count != 1) absl::StrAppend(&text, ", ", place.count);
  return text + "]";
}

}  // namespace tandem::model
