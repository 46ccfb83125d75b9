// RopeSpec from a GGUF file: base, scaling and factor tensor become one table of frequencies.
#ifndef TANDEM_COMMON_MODEL_BUILD_ROPE_H_
#define TANDEM_COMMON_MODEL_BUILD_ROPE_H_

#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/gguf/file.h"
#include "common/model/spec.h"

namespace tandem::model {

// The part that metadata states: dims, base, kind and amount of scaling; inv_freq stays empty.
// `spec` has its sizes.
absl::StatusOr<RopeSpec> ReadRope(const gguf::Metadata& metadata, std::string_view architecture,
                                  RopePairing pairing, const ModelSpec& spec);

// Fills inv_freq and `magnitude`. `factors` divide the frequencies, one per pair (Llama 3's
// rope_freqs.weight); empty: none. Linear scaling divides positions by `factor`; YaRN (Peng et al.,
// 2023, arXiv:2309.00071) does so for slow pairs only.
void FoldFrequencies(std::span<const float> factors, RopeSpec& rope);

// The factors of a file's rope_freqs.weight, or none. INVALID_ARGUMENT for a factor that is not
// finite and positive. REQUIRES: the tensor's shape and type were checked.
absl::StatusOr<std::vector<float>> ReadRopeFactors(const gguf::File& file);

}  // namespace tandem::model

#endif  // TANDEM_COMMON_MODEL_BUILD_ROPE_H_
