// ModelSpec from a GGUF file.
#ifndef TANDEM_COMMON_MODEL_BUILD_SPEC_H_
#define TANDEM_COMMON_MODEL_BUILD_SPEC_H_

#include <cstdint>
#include <optional>
#include <string_view>

#include "absl/status/statusor.h"
#include "common/gguf/file.h"
#include "common/model/spec.h"

namespace tandem::model {

// What a server may fix at its start, the same on all ranks. Rope scaling depends on it, and cached
// K depends on rope scaling, so it never changes while a server runs.
struct SpecOptions {
  uint32_t max_model_len = 0;                   // 0: the file's context length
  std::optional<RopeScalingKind> rope_scaling;  // instead of the file's
  std::optional<float> rope_scale;              // the factor, instead of the file's
  bool operator==(const SpecOptions&) const = default;
};

// As flags and messages spell them: "none", "linear", "ntk" or "yarn", empty for the file's own; a
// scale of 0 for the file's own.
absl::StatusOr<SpecOptions> MakeSpecOptions(uint32_t max_model_len, std::string_view rope_scaling,
                                            float rope_scale);

// Reads sizes and traits, probes features, and checks every tensor's presence, shape and type: what
// this accepts can be sharded and computed. Errors are one line naming the key or tensor with the
// needed and the found value: NOT_FOUND and INVALID_ARGUMENT for broken files, UNIMPLEMENTED for
// sound ones that Tandem cannot run.
absl::StatusOr<ModelSpec> BuildSpec(const gguf::File& file, const SpecOptions& options = {});

}  // namespace tandem::model

#endif  // TANDEM_COMMON_MODEL_BUILD_SPEC_H_
