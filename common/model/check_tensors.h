// Compares a file's tensors with its architecture's table: determines the features, checks every
// shape and type.
#ifndef TANDEM_COMMON_MODEL_CHECK_TENSORS_H_
#define TANDEM_COMMON_MODEL_CHECK_TENSORS_H_

#include "absl/status/status.h"
#include "common/gguf/file.h"
#include "common/model/architecture.h"
#include "common/model/spec.h"

namespace tandem::model {

// Sets the spec's probed features. Rejects a tensor that is neither in the table nor the scale of a
// matrix of it (matrix_scales.h), or of a layer beyond the spec's: ignoring it would change the
// model's mathematics.
absl::Status ProbeFeatures(const gguf::File& file, const Architecture& architecture,
                           ModelSpec& spec);

// Checks that every tensor needed by the spec exists, with the table's shape and a supported type,
// and its scale, if there is one.
absl::Status CheckTensors(const gguf::File& file, const Architecture& architecture,
                          const ModelSpec& spec);

}  // namespace tandem::model

#endif  // TANDEM_COMMON_MODEL_CHECK_TENSORS_H_
