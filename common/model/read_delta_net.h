// The metadata of layers with a recurrent state.
#ifndef TANDEM_COMMON_MODEL_READ_DELTA_NET_H_
#define TANDEM_COMMON_MODEL_READ_DELTA_NET_H_

#include <optional>

#include "absl/status/statusor.h"
#include "common/model/architecture.h"
#include "common/model/metadata_reader.h"
#include "common/model/spec.h"

namespace tandem::model {

// None if the architecture has no such layers. REQUIRES: `spec` has its bounded number of layers.
absl::StatusOr<std::optional<DeltaNetSpec>> ReadDeltaNet(const MetadataReader& reader,
                                                         const Architecture& architecture,
                                                         const ModelSpec& spec);

}  // namespace tandem::model

#endif  // TANDEM_COMMON_MODEL_READ_DELTA_NET_H_
