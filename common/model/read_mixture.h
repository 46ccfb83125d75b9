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

// What experts are scored by, if the file does not say and has a bias of their selection: sigmoids,
// which the balancing by such a bias was made for (https://arxiv.org/abs/2412.19437,
// section 2.1.2). Files of GLM-4.7-Flash lack the key. REQUIRES: `spec` has its features.
void AssumeScores(const MetadataReader& reader, ModelSpec& spec);

// Sets mla, and the cache row sizes derived from it. REQUIRES: `spec` has its heads.
absl::Status ReadLatentAttention(const MetadataReader& reader, ModelSpec& spec);

}  // namespace tandem::model

#endif  // TANDEM_COMMON_MODEL_READ_MIXTURE_H_
