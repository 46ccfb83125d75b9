// A file's tensors held against its architecture's table: which features it has, and that every
// shape and type is right.
#ifndef TANDEM_COMMON_MODEL_CHECK_TENSORS_H_
#define TANDEM_COMMON_MODEL_CHECK_TENSORS_H_

#include "absl/status/status.h"
#include "common/gguf/file.h"
#include "common/model/architecture.h"
#include "common/model/spec.h"

namespace tandem::model {

// Sets the spec's probed features. Refuses a tensor that the table does not have, or one of a layer
// beyond the spec's: it would be part of the model's mathematics that is then left out.
absl::Status ProbeFeatures(const gguf::File& file, const Architecture& architecture,
                           ModelSpec& spec);

// Every tensor that the spec needs is there, in the shape the table says and of a type that can be
// computed with.
absl::Status CheckTensors(const gguf::File& file, const Architecture& architecture,
                          const ModelSpec& spec);

}  // namespace tandem::model

#endif  // TANDEM_COMMON_MODEL_CHECK_TENSORS_H_
