// SpecOptions: model settings fixed by the server at start, the same on all ranks.
#ifndef TANDEM_COMMON_MODEL_SPEC_OPTIONS_H_
#define TANDEM_COMMON_MODEL_SPEC_OPTIONS_H_

#include <cstdint>
#include <optional>

#include "common/model/spec.h"

namespace tandem::model {

// Rope scaling depends on the length, and cached K on rope scaling, so they are constant while a
// server runs.
struct SpecOptions {
  uint32_t max_model_len = 0;                     // 0: the file's context length
  std::optional<RopeScalingKind> rope_scaling{};  // instead of the file's
  float rope_scale = 0;  // the factor, instead of the file's; 0: the file's
  bool load_draft_head = false;
  bool operator==(const SpecOptions&) const = default;
};

}  // namespace tandem::model

#endif  // TANDEM_COMMON_MODEL_SPEC_OPTIONS_H_
