// The KV groups of a file: which layers have which window and which heads, and which of them read
// another layer's cache.
#ifndef TANDEM_COMMON_MODEL_READ_GROUPS_H_
#define TANDEM_COMMON_MODEL_READ_GROUPS_H_

#include "absl/status/status.h"
#include "common/model/architecture.h"
#include "common/model/metadata_reader.h"
#include "common/model/spec.h"
#include "common/model/spec_options.h"

namespace tandem::model {

// Sets spec.kv_groups, those of full attention first; an empty group is omitted. The heads of the
// first group become the model's. INVALID_ARGUMENT naming the key that is missing or does not fit.
// REQUIRES: the spec's sizes are read and validated.
absl::Status ReadGroups(const MetadataReader& reader, const Architecture& architecture,
                        const SpecOptions& options, ModelSpec& spec);

}  // namespace tandem::model

#endif  // TANDEM_COMMON_MODEL_READ_GROUPS_H_
