// The factors of layers' outputs, which the spec holds as numbers.
#ifndef TANDEM_COMMON_MODEL_READ_LAYER_SCALES_H_
#define TANDEM_COMMON_MODEL_READ_LAYER_SCALES_H_

#include <vector>

#include "absl/status/statusor.h"
#include "common/gguf/file.h"
#include "common/model/architecture.h"
#include "common/model/spec.h"

namespace tandem::model {

// One per layer, or none. INVALID_ARGUMENT for a factor that is not finite. REQUIRES: the tensors'
// shapes and types were checked.
absl::StatusOr<std::vector<float>> ReadLayerScales(const gguf::File& file,
                                                   const Architecture& architecture,
                                                   const ModelSpec& spec);

}  // namespace tandem::model

#endif  // TANDEM_COMMON_MODEL_READ_LAYER_SCALES_H_
