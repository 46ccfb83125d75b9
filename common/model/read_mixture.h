// The metadata of mixtures of experts and of latent attention.
#ifndef TANDEM_COMMON_MODEL_READ_MIXTURE_H_
#define TANDEM_COMMON_MODEL_READ_MIXTURE_H_

#include <optional>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/model/architecture.h"
#include "common/model/metadata_reader.h"
#include "common/model/spec.h"

namespace tandem::model {

// None if the file has no experts. `ffn_size` is the dense layers'.
absl::StatusOr<std::optional<MoeSpec>> ReadMixture(const MetadataReader& reader,
                                                   const Architecture& architecture,
                                                   uint32_t ffn_size);

// Sets mla, and the cache row sizes derived from it. REQUIRES: `spec` has its heads.
absl::Status ReadLatentAttention(const MetadataReader& reader, ModelSpec& spec);

}  // namespace tandem::model

#endif  // TANDEM_COMMON_MODEL_READ_MIXTURE_H_
