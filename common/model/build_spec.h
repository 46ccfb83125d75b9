// ModelSpec from a GGUF file.
#ifndef TANDEM_COMMON_MODEL_BUILD_SPEC_H_
#define TANDEM_COMMON_MODEL_BUILD_SPEC_H_

#include "absl/status/statusor.h"
#include "common/gguf/file.h"
#include "common/model/spec.h"
#include "common/model/spec_options.h"

namespace tandem::model {

// Reads sizes and traits, probes features, and checks every tensor's presence, shape and type: an
// accepted model can be sharded and computed. Errors are one line naming the key or tensor with the
// needed and the found value: NOT_FOUND and INVALID_ARGUMENT for broken files, UNIMPLEMENTED for
// valid ones that Tandem does not support.
absl::StatusOr<ModelSpec> BuildSpec(const gguf::File& file, const SpecOptions& options = {});

}  // namespace tandem::model

#endif  // TANDEM_COMMON_MODEL_BUILD_SPEC_H_
