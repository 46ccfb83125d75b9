// Whether a tensor of a file has the shape given by an architecture's table.
#ifndef TANDEM_COMMON_MODEL_SHAPE_H_
#define TANDEM_COMMON_MODEL_SHAPE_H_

#include <string>

#include "common/gguf/tensor_info.h"
#include "common/model/tensor_row.h"

namespace tandem::model {

// Rows and matrices may be one dimension or two: the bytes are the same.
bool HasShape(const gguf::TensorInfo& tensor, const Placement& place);

// "[64, 32, 8]" in the order of files: columns first, without trailing ones.
std::string ShapeText(const Placement& place);

}  // namespace tandem::model

#endif  // TANDEM_COMMON_MODEL_SHAPE_H_
