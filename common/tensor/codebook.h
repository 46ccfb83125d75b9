// Codebooks: the values of four-bit indices that are not evenly spaced.
// Sources: IQ4_NL and IQ4_XS: https://github.com/ggml-org/ggml (kvalues_iq4nl). MXFP4 and NVFP4:
// Open Compute Project, "OCP Microscaling Formats (MX) Specification", FP4 E2M1, here doubled to be
// integers.
#ifndef TANDEM_COMMON_TENSOR_CODEBOOK_H_
#define TANDEM_COMMON_TENSOR_CODEBOOK_H_

#include <cstdint>

namespace tandem::tensor {

struct Codebook {
  int8_t value[16];
};

inline constexpr Codebook kIq4Codebook = {
    {-127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113}};
inline constexpr Codebook kMxfp4Codebook = {
    {0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12}};

}  // namespace tandem::tensor

#endif  // TANDEM_COMMON_TENSOR_CODEBOOK_H_
