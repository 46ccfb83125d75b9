// RopeSpec from a GGUF file: base, scaling and factor tensor become one table of frequencies.
#ifndef TANDEM_COMMON_MODEL_BUILD_ROPE_H_
#define TANDEM_COMMON_MODEL_BUILD_ROPE_H_

#include <optional>
#include <span>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/gguf/file.h"
#include "common/model/architecture.h"
#include "common/model/build_spec.h"
#include "common/model/metadata_reader.h"
#include "common/model/spec.h"

namespace tandem::model {

// The part given by metadata and the server's options: dims, base, kind and amount of scaling;
// inv_freq stays empty. `spec` has its sizes.
absl::StatusOr<RopeSpec> ReadRope(const gguf::Metadata& metadata, const Architecture& architecture,
                                  const ModelSpec& spec, const SpecOptions& options);

// The RoPE of layers with a window, unscaled, if the architecture has one of their own. REQUIRES:
// spec.rope and spec.kv_groups are read.
absl::StatusOr<std::optional<RopeSpec>> ReadWindowRope(const gguf::Metadata& metadata,
                                                       const Architecture& architecture,
                                                       const ModelSpec& spec);

// Positions of a multimodal model have parts: time, height, width and one that is 0 for text. A
// pair i takes its angle from time, height or width by i % 3, as far as that one's section reaches.
// For text the three are equal, so that the sections do not matter, unless a pair takes the last
// part: UNIMPLEMENTED. NOT_FOUND without sections.
absl::Status CheckRopeSections(const MetadataReader& reader, const RopeSpec& rope);

// Fills inv_freq and `magnitude`. `factors` divide the frequencies, one per pair (Llama 3's
// rope_freqs.weight, long-rope's); empty: none. Linear scaling divides positions by `factor`; NTK
// stretches the base; YaRN (Peng et al., 2023, arXiv:2309.00071) divides slow pairs only.
void FoldFrequencies(std::span<const float> factors, RopeSpec& rope);

// The factors that the file has for a context of `context` tokens, or none. INVALID_ARGUMENT for a
// factor that is not finite and positive. REQUIRES: the tensors' shapes and types were checked.
absl::StatusOr<std::vector<float>> ReadRopeFactors(const gguf::File& file, const ModelSpec& spec,
                                                   uint32_t context);

// The file's yarn_log_multiplier, as the architecture uses it. Does nothing if the file has none,
// or no YaRN.
absl::Status ApplyLogMultiplier(const MetadataReader& reader, const Architecture& architecture,
                                ModelSpec& spec);

// The temperature of queries, if the file or the table has one.
absl::Status ReadTemperature(const MetadataReader& reader, const Architecture& architecture,
                             ModelSpec& spec);

}  // namespace tandem::model

#endif  // TANDEM_COMMON_MODEL_BUILD_ROPE_H_
