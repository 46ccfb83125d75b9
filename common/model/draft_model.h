// What a draft model needs in common with the model that it guesses for. Pure functions.
#ifndef TANDEM_COMMON_MODEL_DRAFT_MODEL_H_
#define TANDEM_COMMON_MODEL_DRAFT_MODEL_H_

#include <cstddef>
#include <cstdint>

#include "absl/status/status.h"
#include "common/gguf/file.h"
#include "common/model/spec.h"

namespace tandem::model {

// The KV group with full attention, in whose blocks a draft model keeps its K and V;
// kv_groups.size() if there is none.
size_t FullAttentionGroup(const ModelSpec& spec);

// INVALID_ARGUMENT, with both values, if the vocabularies differ; if the draft model has other
// layers than such with full attention, or the model none of those, or recurrent ones, whose state
// can't be taken back to before a wrong guess.
absl::Status CheckDraftModel(const gguf::File& file, const ModelSpec& spec,
                             const gguf::File& draft_file, const ModelSpec& draft);

// INVALID_ARGUMENT, with both values, if the draft model's context is shorter than `max_model_len`.
absl::Status CheckDraftContext(const ModelSpec& draft, uint32_t max_model_len);

}  // namespace tandem::model

#endif  // TANDEM_COMMON_MODEL_DRAFT_MODEL_H_
